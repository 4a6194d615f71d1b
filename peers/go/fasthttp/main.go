// Command fasthttp serves the operation note as JSON over HTTP/1.1 by valyala/fasthttp: POST /v1/note.
package main

import (
	"encoding/json"
	"log"
	"net"
	"os"
	"strings"
	"time"

	"github.com/valyala/fasthttp"
)

const sdk = "github.com/valyala/fasthttp"

type noteIn struct {
	ID   *int64  `json:"id"`
	Note *string `json:"note"`
}

type noteOut struct {
	ID     int64  `json:"id"`
	Note   string `json:"note"`
	Status string `json:"status"`
	Owner  string `json:"owner"`
}

func handle(c *fasthttp.RequestCtx) {
	switch path := string(c.Path()); {
	case path == "/v1/note" && c.IsPost():
		note(c)
	case path == "/v1/blob" && c.IsPost():
		blob(c)
	case path == "/healthz" && c.IsGet():
		answer(c, fasthttp.StatusOK, map[string]bool{"ok": true})
	default:
		answer(c, fasthttp.StatusNotFound, map[string]string{"error": "no such path"})
	}
}

func note(c *fasthttp.RequestCtx) {
	var in noteIn
	if err := json.Unmarshal(c.PostBody(), &in); err != nil || in.ID == nil || in.Note == nil {
		answer(c, fasthttp.StatusBadRequest, map[string]string{"error": `want {"id":<integer>,"note":<text>}`})
		return
	}
	answer(c, fasthttp.StatusOK, noteOut{*in.ID, *in.Note, "done", "toll"})
}

func blob(c *fasthttp.RequestCtx) {
	var in struct {
		Bytes int `json:"bytes"`
	}
	if err := json.Unmarshal(c.PostBody(), &in); err != nil || in.Bytes < 1 || in.Bytes > 1<<20 {
		answer(c, fasthttp.StatusBadRequest, map[string]string{"error": `want {"bytes":<1 to 1048576>}`})
		return
	}
	answer(c, fasthttp.StatusOK, map[string]string{"text": strings.Repeat("x", in.Bytes)})
}

func answer(c *fasthttp.RequestCtx, status int, v any) {
	body, err := json.Marshal(v)
	if err != nil {
		c.Error(err.Error(), fasthttp.StatusInternalServerError)
		return
	}
	c.SetStatusCode(status)
	c.SetContentType("application/json")
	c.SetBody(body)
}

func main() {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	s := &fasthttp.Server{Handler: handle, Name: "toll", MaxRequestBodySize: 1 << 20, ReadTimeout: 2 * time.Minute}
	go s.Serve(l)
	if err := ready(os.Stdout, "http://"+l.Addr().String(), sdk); err != nil {
		log.Fatal(err)
	}
	// A connection that idles would hold up a graceful end; ours ends with the process.
	if err := obey(os.Stdin, os.Stdout, nil); err != nil {
		log.Fatal(err)
	}
}
