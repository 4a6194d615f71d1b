package gateway

import (
	"container/list"
	"sync"

	"golang.org/x/time/rate"
)

// maxClients bounds how many clients' rates are remembered; the one that was not seen for longest is forgotten.
const maxClients = 4096

// clients limits the rate of each client. A nil one limits nobody.
type clients struct {
	rate  rate.Limit
	burst int

	mu    sync.Mutex
	byKey map[string]*list.Element // guarded by mu
	order list.List                // guarded by mu: of *client, the latest first
}

type client struct {
	key     string
	limiter *rate.Limiter
}

func newClients(c Config) *clients {
	if c.Rate == 0 {
		return nil
	}
	return &clients{rate: rate.Limit(c.Rate), burst: c.Burst, byKey: make(map[string]*list.Element)}
}

// allow says whether a client may make a request now.
func (c *clients) allow(p *peer) bool {
	if c == nil {
		return true
	}
	return c.of(p.key()).Allow()
}

func (c *clients) of(key string) *rate.Limiter {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, ok := c.byKey[key]; ok {
		c.order.MoveToFront(e)
		return e.Value.(*client).limiter
	}
	if c.order.Len() >= maxClients {
		last := c.order.Back()
		delete(c.byKey, last.Value.(*client).key)
		c.order.Remove(last)
	}
	n := &client{key, rate.NewLimiter(c.rate, c.burst)}
	c.byKey[key] = c.order.PushFront(n)
	return n.limiter
}
