package driver

import (
	"context"
	"net/http"
	"sync"
)

// newH2CNote is newHTTPNote over HTTP/2 without TLS, begun by prior knowledge (RFC 9113, 3.3).
func newH2CNote(ctx context.Context, cfg ConnConfig, path string) (*httpNote, error) {
	h, err := newHTTPNote(ctx, cfg, path)
	if err != nil {
		return nil, err
	}
	tr := h.client.Transport.(*http.Transport)
	tr.Protocols = new(http.Protocols)
	tr.Protocols.SetUnencryptedHTTP2(true)
	return h, nil
}

// A h2cPool is the one connection that all VUs of a target share, if they do. When more calls are in flight than the
// server takes on one connection, net/http opens another.
type h2cPool struct {
	mu   sync.Mutex
	http *httpNote // guarded by mu
	uses int       // guarded by mu: VUs on it
}

// open returns a client of its own, or another name of the shared one. close is to be called once.
func (p *h2cPool) open(ctx context.Context, cfg ConnConfig, path string, shared bool) (h *httpNote, close func() error, err error) {
	if !shared {
		h, err := newH2CNote(ctx, cfg, path)
		if err != nil {
			return nil, nil, err
		}
		return h, h.Close, nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.http == nil {
		if p.http, err = newH2CNote(ctx, cfg, path); err != nil {
			return nil, nil, err
		}
	}
	p.uses++
	own := *p.http
	return &own, sync.OnceValue(p.leave), nil
}

// leave closes the connection behind the last VU.
func (p *h2cPool) leave() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.uses--; p.uses > 0 {
		return nil
	}
	h := p.http
	p.http = nil
	return h.Close()
}
