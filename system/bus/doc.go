// Package bus carries messages between agents of different processes by name: directly over connections of our own, through
// a router process, through NATS and over ZeroMQ's protocol. All of them carry the same frames, so what an operation
// promises does not depend on how it travels: an ask runs at most once, or, with a key, is answered again without running
// again; work whose deadline is over is not run; a late reply reaches nobody. It never calls anything exactly-once, and it
// neither runs agents nor knows what they do.
package bus
