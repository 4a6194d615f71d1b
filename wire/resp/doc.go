// Package resp is a client of Redis' serialization protocol, version 2: commands sent as one piece, replies read within
// bounds. It is what the tools of a published benchmark need of a Redis server, and no more: no cluster, no subscriptions.
package resp
