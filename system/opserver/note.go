package opserver

import "context"

// NoteIn is the input of note.
type NoteIn struct {
	ID   int64  `json:"id" doc:"the caller's own number for this call"`
	Note string `json:"note" doc:"text to keep"`
}

// NoteOut is the output of note.
type NoteOut struct {
	ID     int64  `json:"id" doc:"the number that the caller gave"`
	Note   string `json:"note" doc:"the text that was kept"`
	Status string `json:"status"`
	Owner  string `json:"owner"`
}

// Note returns the operation that every envelope is measured with. It does next to nothing, so that what is measured is
// the envelope.
func Note() Operation {
	return Define("note", "Takes a note and says that it is done.", func(_ context.Context, in NoteIn) (NoteOut, error) {
		return NoteOut{in.ID, in.Note, "done", "toll"}, nil
	})
}
