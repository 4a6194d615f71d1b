package zap

import "crypto/tls"

// PostQuantum returns a copy of cfg that speaks TLS 1.3 with X25519MLKEM768 and nothing else: a peer without the hybrid key
// exchange is refused.
func PostQuantum(cfg *tls.Config) *tls.Config {
	c := cfg.Clone()
	c.MinVersion = tls.VersionTLS13
	c.CurvePreferences = []tls.CurveID{tls.X25519MLKEM768}
	return c
}
