package opserver

import (
	"context"
	"fmt"
	"strings"
)

// BlobIn is the input of blob.
type BlobIn struct {
	Bytes int64 `json:"bytes" doc:"how many times the letter x, from 1 to 1048576"`
}

// BlobOut is the output of blob.
type BlobOut struct {
	Text string `json:"text"`
}

// maxBlob is the longest text that blob gives.
const maxBlob = 1 << 20

// Blob returns an operation whose output is as long as the caller wants: what a large result costs in an envelope. It costs
// the operation nothing, whatever the length.
func Blob() Operation {
	text := strings.Repeat("x", maxBlob)
	return Define("blob", "Gives a text of the length asked for.", func(_ context.Context, in BlobIn) (BlobOut, error) {
		if in.Bytes < 1 || in.Bytes > maxBlob {
			return BlobOut{}, &Error{Invalid, fmt.Sprintf("bytes is %d; want 1 to %d", in.Bytes, maxBlob)}
		}
		return BlobOut{text[:in.Bytes]}, nil
	})
}
