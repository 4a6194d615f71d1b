package contender

import (
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
)

// stdioAddr is the address of a contender that is called over its own stdin and stdout.
const stdioAddr = "stdio:"

const wantAddr = "expected tcp://host:port, tls://host:port, http://host:port, https://host:port, unix:/path or stdio:"

// splitAddr takes a ready address or an endpoint apart into the address and, for HTTP, the path.
func splitAddr(s string) (addr, path string, err error) {
	if s == stdioAddr {
		return s, "", nil
	}
	if file, ok := strings.CutPrefix(s, "unix:"); ok {
		if !filepath.IsAbs(file) {
			return "", "", fmt.Errorf("address %s: a unix socket needs an absolute path", quote([]byte(s)))
		}
		return s, "", nil
	}
	u, err := url.Parse(s)
	if err != nil || u.User != nil || u.Opaque != "" || u.Fragment != "" {
		return "", "", fmt.Errorf("address %s: %s", quote([]byte(s)), wantAddr)
	}
	port, err := strconv.ParseUint(u.Port(), 10, 16)
	if err != nil || port == 0 || u.Hostname() == "" {
		return "", "", fmt.Errorf("address %s: %s", quote([]byte(s)), wantAddr)
	}
	path = u.RequestURI()
	switch {
	case u.Scheme == "http", u.Scheme == "https":
	case (u.Scheme == "tcp" || u.Scheme == "tls") && u.Path == "" && u.RawQuery == "":
	default:
		return "", "", fmt.Errorf("address %s: %s", quote([]byte(s)), wantAddr)
	}
	if path == "/" {
		path = ""
	}
	return u.Scheme + "://" + u.Host, path, nil
}

// dialArgs returns what net.Dial wants for an address.
func dialArgs(addr string) (network, address string) {
	if file, ok := strings.CutPrefix(addr, "unix:"); ok {
		return "unix", file
	}
	u, err := url.Parse(addr)
	if err != nil {
		panic("an address that was checked: " + err.Error())
	}
	return "tcp", net.JoinHostPort(u.Hostname(), u.Port())
}
