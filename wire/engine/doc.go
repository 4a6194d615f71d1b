// Package engine is the stdio door for work that happens inside a process: a library, an actor core, a group engine. It
// holds the lines that are asked and answered, and runs the work of engines written in Go. The engine holds the clock;
// setting up and verifying are outside it.
package engine
