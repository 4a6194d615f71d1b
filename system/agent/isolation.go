package agent

// Isolation is where a class' agents run. The handler that it makes stands for an agent somewhere else.
type Isolation interface {
	Handler(class string, config map[string]any) (Handler, error)
}

// A releaser is a handler that holds something outside the process: it is called once the process has gone, also when it was
// never ready.
type releaser interface{ release() }

func release(h Handler) {
	if r, ok := h.(releaser); ok {
		r.release()
	}
}
