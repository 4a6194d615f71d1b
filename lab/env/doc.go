// Package env discloses the machine a result was measured on: processor, system, limits, the lab's own cost and what else
// the machine did meanwhile. It changes nothing, starts no process and never fails: what it can't see it says, with the
// reason. It reports no host name, no serial number and no path of the machine.
//
// The pseudo-files of Linux are read through an fs.FS and parsed on every system, so that the parsers are tested anywhere;
// only what needs a system call is in files of one system.
package env
