// Package hub connects the rules of package fleet to the world: the embedded NATS server, the subjects and streams that
// messages and slices travel by, the file that a worker keeps its slices in, and the clocks.
package hub
