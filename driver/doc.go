// Package driver is the client side of every protocol that is measured: each file implements [load.Target] for one of
// them. A Caller here holds one connection for one VU, checks every reply in full and names each failure by a kind of
// lab/record. Drivers share no type with the servers they call, so that they are an independent judge of the answers; they
// start no process, keep no clock and derive no figure.
package driver
