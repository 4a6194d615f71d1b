//go:build !voi

package mls

// voiCurves is not in this binary: the build tag voi links curve25519-voi.
func voiCurves() (curves, bool) { return nil, false }
