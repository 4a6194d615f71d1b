// Package record keeps what one virtual user measured: a latency histogram, the raw samples when they are few, failures
// by kind, named parts, bytes on the wire. One VU writes one [Shard]; shards are merged after the window. Nothing here
// takes a lock, reads a clock or allocates while a window is open, and nothing here derives a statistic: lab/stats does.
package record
