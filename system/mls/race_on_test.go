//go:build race

package mls

// underRace says that the race detector watches, which makes curve arithmetic an order of magnitude slower. Nothing of this
// package runs on two goroutines, so one ciphersuite is enough for it; the run without it has them all.
const underRace = true
