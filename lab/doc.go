// Package lab conducts a plan: for each case, phase and concurrency it has the contenders started anew for every round,
// warms them up, calls them in shuffled blocks, meters what both sides spent, and reduces it all to a result document. It
// knows no protocol and starts no process: an [Opener] does, which the suite implements.
package lab
