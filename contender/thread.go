package contender

import (
	"errors"
	"os/exec"
	"runtime"
)

// An enterer takes the calling OS thread to where a child is to be born; leave brings it back.
type enterer func(cmd *exec.Cmd) (leave func() error, err error)

// onThread starts cmd in what the enterers enter, and calls wait with what came of it, on the OS thread that forked: the
// death signal that the child gets is tied to that thread, so that it stays until wait returns (golang/go#27505). The
// main thread enters nothing: it stands for the whole process, whose memory it would take along.
func onThread(cmd *exec.Cmd, enter []enterer, wait func(error)) {
	if len(enter) == 0 {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		wait(cmd.Start())
		return
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		if isMainThread() {
			// While it is held here, the next goroutine has another.
			defer runtime.UnlockOSThread()
			onThread(cmd, enter, wait)
			return
		}
		back, err := startIn(cmd, enter)
		wait(err)
		// A thread that could not be brought back ends with its goroutine.
		if back == nil {
			runtime.UnlockOSThread()
		}
	}()
	<-done
}

// startIn starts cmd; back is why the thread is not where it was before.
func startIn(cmd *exec.Cmd, enter []enterer) (back, err error) {
	var leave []func() error
	for _, e := range enter {
		l, enterErr := e(cmd)
		if enterErr != nil {
			err = enterErr
			break
		}
		leave = append(leave, l)
	}
	if err == nil {
		err = cmd.Start()
	}
	for i := len(leave) - 1; i >= 0; i-- {
		back = errors.Join(back, leave[i]())
	}
	return back, err
}
