package mcp

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// Config says who a server is and within which bounds it answers. Zero values mean their defaults.
type Config struct {
	Name, Version string // of the server; "server" and "0"
	Title         string // for people; optional
	Instructions  string // for the model; optional

	Sessions     bool          // initialize gives a session id, which must then be sent; 2026-07-28 has none either way
	MaxSessions  int           // sessions at a time, the next is refused; 10,000
	SessionIdle  time.Duration // after which an unused session is forgotten; 5 min
	Events       bool          // answer every request with an event stream; else only one that has more than its result to say
	MaxStreams   int           // streams that wait for changes, at a time; 1,024
	MaxBody      int           // bytes of a message on a byte stream (HTTP servers have their own bound); 1 MiB
	MaxBatch     int           // messages of a batch; 64
	MaxCalls     int           // calls at a time of one byte stream; 64
	PageSize     int           // entries of a list's page; 1,000
	ListTTL      time.Duration // how long a client may keep a list; 1 min
	AskTimeout   time.Duration // for a client's answer to a server's request; 1 min
	KeepAlive    time.Duration // between comments on a stream that is silent; 15 s
	StateTTL     time.Duration // how long a requestState is good; 10 min
	StateKey     []byte        // signs requestState; random when empty, which other processes then can't verify
	Hosts        []string      // names that may stand in Host beside localhost and addresses
	Origins      []string      // origins of pages that may call, beside those on the loopback address: scheme://host:port
	AnyHost      bool          // no check of Host and Origin, as behind a unix socket
	MaxResources int           // resources that one client may subscribe to; 1,000
}

func (c Config) withDefaults() Config {
	number := func(n *int, byDefault int) {
		if *n <= 0 {
			*n = byDefault
		}
	}
	duration := func(d *time.Duration, byDefault time.Duration) {
		if *d <= 0 {
			*d = byDefault
		}
	}
	if c.Name == "" {
		c.Name = "server"
	}
	if c.Version == "" {
		c.Version = "0"
	}
	number(&c.MaxSessions, 10_000)
	number(&c.MaxStreams, 1024)
	number(&c.MaxBody, 1<<20)
	number(&c.MaxBatch, 64)
	number(&c.MaxCalls, 64)
	number(&c.PageSize, 1000)
	number(&c.MaxResources, 1000)
	duration(&c.SessionIdle, 5*time.Minute)
	duration(&c.ListTTL, time.Minute)
	duration(&c.AskTimeout, time.Minute)
	duration(&c.KeepAlive, 15*time.Second)
	duration(&c.StateTTL, 10*time.Minute)
	if len(c.StateKey) == 0 {
		c.StateKey = make([]byte, 32)
		rand.Read(c.StateKey)
	}
	return c
}

// A Server answers requests of the protocol. It is safe for concurrent use.
type Server struct {
	cfg      Config
	identity []byte                  // the _meta of a result of 2026-07-28, with a comma before it
	ttl      []byte                  // the hints of a result that may be kept, with a comma before them
	catalog  atomic.Pointer[catalog] // what it offers
	sessions sessions
	streams  streams
	ctx      context.Context // ends with Close
	cancel   context.CancelFunc

	mu sync.Mutex // serializes changes of catalog
}

// New makes a server that offers nothing yet.
func New(cfg Config) *Server {
	cfg = cfg.withDefaults()
	s := &Server{cfg: cfg}
	s.identity = fmt.Appendf(nil, `,"_meta":{"%s":%s}`, metaServerInfo, mustJSON(s.info()))
	s.ttl = fmt.Appendf(nil, `,"ttlMs":%d,"cacheScope":"public"`, cfg.ListTTL.Milliseconds())
	s.ctx, s.cancel = context.WithCancel(context.Background())
	none := new(catalog)
	s.greets(none)
	s.catalog.Store(none)
	s.sessions.init(cfg)
	s.streams.init(cfg)
	return s
}

// Close ends all sessions, calls and streams; clients that wait on a stream are told. What comes afterwards is refused.
func (s *Server) Close() {
	s.cancel()
	s.sessions.close()
}

// info is what the server says of itself.
func (s *Server) info() any {
	return struct {
		Name    string `json:"name"`
		Title   string `json:"title,omitempty"`
		Version string `json:"version"`
	}{s.cfg.Name, s.cfg.Title, s.cfg.Version}
}

// mustJSON encodes what can't fail to be encoded.
func mustJSON(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic("as JSON: " + err.Error())
	}
	return b
}

// A catalog is what a server offers at a moment; it never changes.
type catalog struct {
	tools     index[Tool]
	resources index[Resource]
	templates index[Template]
	prompts   index[Prompt]

	// Once the server has offered some, it says so for good: what a client was told must not become untrue.
	hadTools, hadResources, hadPrompts bool

	// What a response to initialize ends with, behind the revision: made once, for clients that can and can't be told of
	// changes. A session begins with it, and many have only one request more.
	welcome map[bool][]byte
}

// greets makes what clients of a catalog are welcomed with.
func (s *Server) greets(c *catalog) {
	c.welcome = make(map[bool][]byte)
	for _, tells := range []bool{false, true} {
		rest := mustJSON(struct {
			Capabilities any    `json:"capabilities"`
			Server       any    `json:"serverInfo"`
			Instructions string `json:"instructions,omitempty"`
		}{c.capabilities(tells), s.info(), s.cfg.Instructions})
		c.welcome[tells] = append(append([]byte(`",`), rest[1:]...), '}')
	}
}

// AddTools adds tools, all or none; one with a name that is there replaces it. Clients that asked to be told are.
func (s *Server) AddTools(tools ...Tool) error {
	return s.change(toolsChanged, func(c *catalog) (err error) {
		c.hadTools = true
		c.tools, err = c.tools.add("tools", s.cfg.PageSize, tools)
		return err
	})
}

// RemoveTools removes the named tools.
func (s *Server) RemoveTools(names ...string) error {
	return s.change(toolsChanged, func(c *catalog) (err error) {
		c.tools, err = c.tools.remove("tools", s.cfg.PageSize, names)
		return err
	})
}

// AddResources adds resources by their URI.
func (s *Server) AddResources(resources ...Resource) error {
	return s.change(resourcesChanged, func(c *catalog) (err error) {
		c.hadResources = true
		c.resources, err = c.resources.add("resources", s.cfg.PageSize, resources)
		return err
	})
}

// RemoveResources removes the resources with the given URIs.
func (s *Server) RemoveResources(uris ...string) error {
	return s.change(resourcesChanged, func(c *catalog) (err error) {
		c.resources, err = c.resources.remove("resources", s.cfg.PageSize, uris)
		return err
	})
}

// AddTemplates adds resource templates by their URI template.
func (s *Server) AddTemplates(templates ...Template) error {
	return s.change(resourcesChanged, func(c *catalog) (err error) {
		c.hadResources = true
		c.templates, err = c.templates.add("resourceTemplates", s.cfg.PageSize, templates)
		return err
	})
}

// AddPrompts adds prompts by their name.
func (s *Server) AddPrompts(prompts ...Prompt) error {
	return s.change(promptsChanged, func(c *catalog) (err error) {
		c.hadPrompts = true
		c.prompts, err = c.prompts.add("prompts", s.cfg.PageSize, prompts)
		return err
	})
}

// RemovePrompts removes the named prompts.
func (s *Server) RemovePrompts(names ...string) error {
	return s.change(promptsChanged, func(c *catalog) (err error) {
		c.prompts, err = c.prompts.remove("prompts", s.cfg.PageSize, names)
		return err
	})
}

// ResourceUpdated tells the clients that subscribed to a resource that it has changed.
func (s *Server) ResourceUpdated(uri string) {
	s.streams.updated(uri)
	s.sessions.updated(uri)
}

func (s *Server) change(what changes, f func(c *catalog) error) error {
	s.mu.Lock()
	next := *s.catalog.Load()
	err := f(&next)
	if err == nil {
		s.greets(&next)
		s.catalog.Store(&next)
	}
	s.mu.Unlock()
	if err != nil {
		return err
	}
	s.streams.changed(what)
	s.sessions.changed(what)
	return nil
}
