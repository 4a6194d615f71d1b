package web

import (
	"crypto/subtle"
	"embed"
	"errors"
	"fmt"
	"html/template"
	"net"
	"net/http"
	"os"
	"regexp"
	"strings"
	"time"
)

//go:embed page
var pageFiles embed.FS

// A Config says what is shown, and to whom.
type Config struct {
	Dir   string               // folder of results
	Token string               // what a request must carry; empty for none, which is for loopback only
	Spent func() time.Duration // CPU time that this process has used; nil = watching is not charged
}

// A Server is the page. It is safe for concurrent use.
type Server struct {
	cfg   Config
	root  *os.Root
	mux   *http.ServeMux
	pages *template.Template
	index *index
	watch *watcher
}

// New opens the folder. The server must be closed.
func New(cfg Config) (*Server, error) {
	root, err := os.OpenRoot(cfg.Dir)
	if err != nil {
		return nil, fmt.Errorf("view: %w", err)
	}
	pages, err := template.New("").Funcs(functions()).ParseFS(pageFiles, "page/*.html")
	if err != nil {
		return nil, errors.Join(fmt.Errorf("view: its templates: %w", err), root.Close())
	}
	s := &Server{cfg: cfg, root: root, mux: http.NewServeMux(), pages: pages, index: &index{root: root}, watch: &watcher{root: root, spent: cfg.Spent}}
	s.mux.HandleFunc("GET /{$}", s.list)
	s.mux.HandleFunc("GET /trend", s.trend)
	s.mux.HandleFunc("GET /compare", s.compare)
	s.mux.HandleFunc("GET /run/{folder}/{$}", s.report)
	s.mux.HandleFunc("GET /run/{folder}/result.json", s.document)
	s.mux.HandleFunc("GET /live", s.live)
	s.mux.HandleFunc("GET /watch", s.watchPage)
	return s, nil
}

// Close lets go of the folder.
func (s *Server) Close() error { return s.root.Close() }

// cookieName holds the token once a request has shown it.
const cookieName = "toll-token"

// ServeHTTP answers who may ask.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:; connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cache-Control", "no-store")
	switch {
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		h.Set("Allow", "GET, HEAD")
		http.Error(w, "this page is only read", http.StatusMethodNotAllowed)
	case s.cfg.Token == "" && !loopback(r.Host):
		// Another site's name that resolves to this machine must not read the page.
		http.Error(w, "asked by another name than this machine's own", http.StatusForbidden)
	case !s.admitted(w, r):
		http.Error(w, "the token is missing or wrong; toll view printed it", http.StatusUnauthorized)
	default:
		s.mux.ServeHTTP(w, r)
	}
}

func loopback(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	ip := net.ParseIP(strings.Trim(host, "[]"))
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// admitted looks for the token in the address, and in the cookie that is set from it.
func (s *Server) admitted(w http.ResponseWriter, r *http.Request) bool {
	if s.cfg.Token == "" {
		return true
	}
	right := func(text string) bool { return subtle.ConstantTimeCompare([]byte(text), []byte(s.cfg.Token)) == 1 }
	if right(r.URL.Query().Get("token")) {
		http.SetCookie(w, &http.Cookie{Name: cookieName, Value: s.cfg.Token, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode})
		return true
	}
	c, err := r.Cookie(cookieName)
	return err == nil && right(c.Value)
}

// folderName reports whether a result's folder may be called so: one element of a path, and no hidden one.
func folderName(name string) bool {
	return len(name) <= 200 && regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._+-]*$`).MatchString(name)
}

// fail answers with a page that says what was wrong.
func (s *Server) fail(w http.ResponseWriter, status int, err error) {
	w.WriteHeader(status)
	s.render(w, "error.html", err.Error())
}

func (s *Server) render(w http.ResponseWriter, name string, data any) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	if err := s.pages.ExecuteTemplate(w, name, data); err != nil {
		// The head is written: all that can be done is to show that the page ends here.
		fmt.Fprintf(w, "<p>this page could not be finished: %s", template.HTMLEscapeString(err.Error()))
	}
}
