// Package envelope is the message that agents exchange, the typed reasons why one could not be answered, and how both look
// on the wire: as a MessagePack map and as JSON, field for field what the Python runtime civitas writes (schema version 1).
// It neither sends nor handles anything.
package envelope
