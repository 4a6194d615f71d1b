// Package system builds the reference systems by name, for a process that serves one of them. It knows what each needs and
// what its address looks like; it prints nothing and measures nothing.
package system
