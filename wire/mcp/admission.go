package mcp

import (
	"bytes"
	"net"
	"net/url"
	"strconv"
	"strings"
)

// allowed holds Host and Origin against DNS rebinding and requests from other sites' pages. A page can't make a browser
// send an address literal or localhost as Host for its own name, so those, and the names in cfg, are served. Origin may be
// the server's own, on the loopback address, or one of those in cfg.
func (s *Server) allowed(h *Head) bool {
	if s.cfg.AnyHost {
		return true
	}
	if h.repeated != "" && (foldEqual([]byte(h.repeated), "host") || foldEqual([]byte(h.repeated), "origin")) {
		return false
	}
	if h.host != nil && !s.hostAllowed(h.host) {
		return false
	}
	if h.origin == nil {
		return true
	}
	for _, o := range s.cfg.Origins {
		if strings.EqualFold(o, string(h.origin)) {
			return true
		}
	}
	u, err := url.Parse(string(h.origin))
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return false
	}
	return strings.EqualFold(u.Host, string(h.host)) || loopback(u.Hostname())
}

func (s *Server) hostAllowed(host []byte) bool {
	name := host
	switch i := bytes.LastIndexByte(host, ':'); {
	case len(host) > 0 && host[0] == '[':
		if end := bytes.IndexByte(host, ']'); end > 0 {
			name = host[1:end]
		}
	case i >= 0:
		name = host[:i]
	}
	if string(name) == "127.0.0.1" || foldEqual(name, "localhost") || net.ParseIP(string(name)) != nil {
		return true
	}
	for _, h := range s.cfg.Hosts {
		if strings.EqualFold(h, string(name)) {
			return true
		}
	}
	return false
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback()
}

// takes reports whether an Accept header admits a media type; no header admits all (RFC 9110 §12.5.1).
func takes(accept []byte, kind, sub string) bool {
	if len(accept) == 0 {
		return true
	}
	for len(accept) > 0 {
		item := accept
		if i := bytes.IndexByte(accept, ','); i >= 0 {
			item, accept = accept[:i], accept[i+1:]
		} else {
			accept = nil
		}
		item, weight, _ := bytes.Cut(item, []byte(";"))
		if refusedByWeight(weight) {
			continue
		}
		item = bytes.TrimSpace(item)
		slash := bytes.IndexByte(item, '/')
		if slash < 0 {
			continue
		}
		if k, s := item[:slash], item[slash+1:]; foldEqual(k, kind) && (foldEqual(s, sub) || string(s) == "*") || string(item) == "*/*" {
			return true
		}
	}
	return false
}

// refusedByWeight reports whether parameters say q=0.
func refusedByWeight(parameters []byte) bool {
	for p := range bytes.SplitSeq(parameters, []byte(";")) {
		if v, ok := bytes.CutPrefix(bytes.ToLower(bytes.TrimSpace(p)), []byte("q=")); ok {
			q, err := strconv.ParseFloat(string(v), 64)
			return err == nil && q == 0
		}
	}
	return false
}

// isJSON reports whether a Content-Type says JSON.
func isJSON(contentType []byte) bool {
	media, _, _ := bytes.Cut(contentType, []byte(";"))
	return foldEqual(bytes.TrimSpace(media), "application/json")
}
