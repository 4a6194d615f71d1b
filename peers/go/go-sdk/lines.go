package main

import (
	"io"
	"sync"
)

// A lineWriter lets the contract's answers and the protocol's messages share stdout: each is written as one piece.
type lineWriter struct {
	mu sync.Mutex
	w  io.Writer
}

// Write writes p whole.
func (l *lineWriter) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(p)
}

// Close does nothing: stdout closes with the process.
func (l *lineWriter) Close() error { return nil }
