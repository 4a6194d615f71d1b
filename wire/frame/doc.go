// Package frame is how a bus' requests and replies look as bytes: on a stream, where they are a [mux.Framing], and as the
// body of a broker's message. A frame carries the call's number, the epoch of the recipient that is meant, a deadline on the
// recipient's clock, the names of recipient, sender and operation, and a body that it does not look into. It sends nothing.
package frame
