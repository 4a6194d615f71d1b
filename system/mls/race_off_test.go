//go:build !race

package mls

// underRace says that the race detector does not watch, so every ciphersuite is run.
const underRace = false
