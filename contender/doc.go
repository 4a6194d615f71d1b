// Package contender is the one door through which a system that is to be measured comes in, ours or anyone's: it reads
// manifests, starts a process or a container, waits until it is ready, says what it has used and makes sure that nothing
// of it is left.
//
// The contract of a child process: its first line on stdout is JSON, {"ready":ADDR,"version":…}, unless the manifest names
// a probe; the line "stats" on stdin is answered by one line of JSON on stdout; closed stdin means stop.
//
// A contender is not restarted, limited or called here, and nothing it says about its CPU time is believed: that comes
// from the system.
package contender
