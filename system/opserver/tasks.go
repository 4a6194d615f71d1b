package opserver

import "context"

// TasksOut is the output of tasks_list.
type TasksOut struct {
	Tasks []string `json:"tasks"`
}

// Tasks returns an operation that takes nothing and gives an empty list: what the published transport table called.
func Tasks() Operation {
	return Define("tasks_list", "Lists the tasks, of which there are none.", func(context.Context, struct{}) (TasksOut, error) {
		return TasksOut{Tasks: []string{}}, nil
	})
}
