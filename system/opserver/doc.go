// Package opserver serves one registry of operations over the envelopes that are compared: an [Operation] is a name, two
// schemas and a function, and knows no envelope; each envelope is a projection of the registry in a file of its own. Beside
// them stand the floors, [NewEcho] and [NewNull], which answer without any operation at all. Servers here listen on
// loopback or on a private socket, hold nothing between calls and write no log.
package opserver
