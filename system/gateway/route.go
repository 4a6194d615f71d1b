package gateway

import (
	"bytes"
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
)

// A route is a Route that is ready to match.
type route struct {
	Route
	segments []segment
	inFlight atomic.Int64
	valve    *valve // nil without Within
	fixed    bool   // no segment and not the agent's name depends on the request
}

// A segment is one part of a path between slashes.
type segment struct {
	text  string // when it is fixed
	param string // when it is a {name}
}

// A table finds the route of a request: fixed paths by one lookup, the others in their order.
type table struct {
	fixed map[string][]*route
	open  []*route
	all   []*route
}

func newTable(routes []Route, c Config) (*table, error) {
	t := &table{fixed: make(map[string][]*route)}
	for i, given := range routes {
		r, err := newRoute(given, c)
		if err != nil {
			return nil, fmt.Errorf("route %d: %w", i+1, err)
		}
		if twin := slices.IndexFunc(t.all, r.same); twin >= 0 {
			return nil, fmt.Errorf("route %d: %s %s: route %d has the same method and path", i+1, r.Method, r.Path, twin+1)
		}
		t.all = append(t.all, r)
		if r.fixed {
			t.fixed[r.Path] = append(t.fixed[r.Path], r)
		} else {
			t.open = append(t.open, r)
		}
	}
	return t, nil
}

func newRoute(given Route, c Config) (*route, error) {
	r := &route{Route: given}
	r.Mode = cmp.Or(r.Mode, Call)
	r.Type = cmp.Or(r.Type, "http.request")
	r.Timeout = cmp.Or(r.Timeout, c.Timeout)
	r.InFlight = cmp.Or(r.InFlight, c.InFlight)
	switch {
	case !slices.Contains([]string{"GET", "POST", "PUT", "PATCH", "DELETE"}, r.Method):
		return nil, fmt.Errorf("method %q; expected GET, POST, PUT, PATCH or DELETE", r.Method)
	case !slices.Contains([]string{Call, Cast, Stream}, r.Mode):
		return nil, fmt.Errorf("%s %s: mode %q; expected call, cast or stream", r.Method, r.Path, r.Mode)
	case r.Agent == "":
		return nil, fmt.Errorf("%s %s: no agent", r.Method, r.Path)
	case r.Timeout < 0 || r.InFlight < 0 || r.Within < 0:
		return nil, fmt.Errorf("%s %s: timeout %v, in flight %d, within %v; expected none below 0", r.Method, r.Path, r.Timeout, r.InFlight, r.Within)
	case r.Within > 0 && r.Mode != Call:
		return nil, fmt.Errorf("%s %s: within %v of a %s; only a call has an answer that can be late", r.Method, r.Path, r.Within, r.Mode)
	case !strings.HasPrefix(r.Path, "/"):
		return nil, fmt.Errorf("path %q; expected one that begins with /", r.Path)
	}
	var names []string
	for part := range strings.SplitSeq(r.Path[1:], "/") {
		name, open := strings.CutPrefix(part, "{")
		name, closed := strings.CutSuffix(name, "}")
		switch {
		case open != closed, strings.ContainsAny(name, "{}"), open && name == "":
			return nil, fmt.Errorf("path %s: segment %q; expected text or {name}", r.Path, part)
		case open && slices.Contains(names, name):
			return nil, fmt.Errorf("path %s: two segments are named %s", r.Path, name)
		case open:
			names = append(names, name)
			r.segments = append(r.segments, segment{param: name})
		default:
			r.segments = append(r.segments, segment{text: part})
		}
	}
	if strings.Contains(r.Agent, "{") && !slices.ContainsFunc(names, func(n string) bool { return strings.Contains(r.Agent, "{"+n+"}") }) {
		return nil, fmt.Errorf("%s %s: agent %q names no segment of the path", r.Method, r.Path, r.Agent)
	}
	r.fixed, r.valve = len(names) == 0, newValve(r.Within)
	return r, nil
}

// same says whether no request could tell two routes apart.
func (r *route) same(o *route) bool {
	return r.Method == o.Method && slices.EqualFunc(r.segments, o.segments, func(a, b segment) bool {
		return a.text == b.text && (a.param == "") == (b.param == "")
	})
}

// find returns the route of a request and the values of its path's segments. Without one, allow lists the methods that the
// path has, empty for a path that nothing is at.
func (t *table) find(method, path []byte) (found *route, params []string, allow []string) {
	for _, r := range t.fixed[string(path)] {
		if r.Method == string(method) {
			return r, nil, nil
		}
		allow = append(allow, r.Method)
	}
	for _, r := range t.open {
		values, ok := r.match(path)
		switch {
		case !ok:
		case r.Method == string(method):
			return r, values, nil
		default:
			allow = append(allow, r.Method)
		}
	}
	return nil, nil, allow
}

// match compares a path with the route's and returns the values of its {segments}, unescaped. An escaped slash stays within
// its segment.
func (r *route) match(path []byte) ([]string, bool) {
	rest, ok := bytes.CutPrefix(path, []byte("/"))
	var values []string
	for i, s := range r.segments {
		part, after, more := bytes.Cut(rest, []byte("/"))
		if !ok || more != (i < len(r.segments)-1) {
			return nil, false
		}
		if s.param == "" {
			if string(part) != s.text {
				return nil, false
			}
		} else {
			value, err := url.PathUnescape(string(part))
			if err != nil || value == "" {
				return nil, false
			}
			values = append(values, value)
		}
		rest = after
	}
	return values, ok
}

// agent returns the name of the agent that values lead to.
func (r *route) agent(values []string) string {
	if r.fixed || !strings.Contains(r.Agent, "{") {
		return r.Agent
	}
	name := r.Agent
	at := 0
	for _, s := range r.segments {
		if s.param != "" {
			name = strings.ReplaceAll(name, "{"+s.param+"}", values[at])
			at++
		}
	}
	return name
}

// fill puts the path's values into a payload; they go before what a body says.
func (r *route) fill(payload map[string]any, values []string) {
	at := 0
	for _, s := range r.segments {
		if s.param != "" {
			payload[s.param] = values[at]
			at++
		}
	}
}

// reads says whether requests of the route carry no body.
func (r *route) reads() bool { return r.Method == http.MethodGet || r.Method == http.MethodDelete }
