package zap_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"errors"
	"fmt"
	"math/big"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"toll/wire/mux"
	"toll/wire/zap"
)

func TestBadRPCFrames(t *testing.T) {
	t.Parallel()
	good := (&zap.RPCResponse{Status: 200, Promise: 7, Body: []byte("ok")}).Append(nil)
	spoil := func(at int, with byte) []byte {
		b := bytes.Clone(good)
		b[at] = with
		return b
	}
	for name, c := range map[string]struct {
		in   []byte
		want string
	}{
		"short":        {good[:4], "zap: frame of 4 bytes: truncated"},
		"direction":    {spoil(4, 1), "zap: direction 1 instead of 2: unexpected direction"},
		"magic":        {spoil(5, 'z'), "zap: magic 7a415000: not a ZAP message"},
		"type":         {spoil(12, 199), "zap: type 199 instead of 200: unexpected type of message"},
		"shorter":      {append(bytes.Clone(good), 0), "zap: message of 38 bytes in a frame of 39: bad total size"},
		"body outside": {spoil(33, 99), "zap: slot at 28 points to 2 bytes at 127 of 38: offset or length outside the message"},
	} {
		if err := new(zap.RPCResponse).Parse(c.in); err == nil || err.Error() != c.want {
			t.Errorf("%s:\ngot  %v\nwant %s", name, err, c.want)
		}
	}
	for n, want := range map[uint32]string{
		64<<20 + 1: "zap: frame of 67108865 bytes, at most 67108864: too large",
		1<<32 - 1:  "zap: frame of 4294967295 bytes, at most 67108864: too large",
		16:         "zap: frame of 16 bytes is less than a header: truncated",
	} {
		if _, err := (zap.RPCFraming{}).Length(binary.LittleEndian.AppendUint32(nil, n)); err == nil || err.Error() != want {
			t.Errorf("%d: got %v, want %s", n, err, want)
		}
	}
	var req zap.RPCRequest
	want := zap.RPCRequest{Method: 3, Promise: 9, Target: 8, Capability: []byte("c"), Payload: []byte("p")}
	if err := req.Parse(want.Append(nil)); err != nil || cmp.Diff(want, req) != "" {
		t.Errorf("%+v, %v", req, err)
	}
}

// echoRPC answers method 1 with its payload; method 2 gets its answer when never is closed.
func echoRPC(never chan struct{}) *mux.Server {
	var pool sync.Pool
	return &mux.Server{
		Framing: zap.RPCFraming{},
		Quick:   func(frame []byte) bool { return frame[5+16] == 1 },
		Handle: func(dst, frame []byte) ([]byte, error) {
			req, _ := pool.Get().(*zap.RPCRequest)
			if req == nil {
				req = new(zap.RPCRequest)
			}
			defer pool.Put(req)
			if err := req.Parse(frame); err != nil {
				return nil, err
			}
			if req.Method == 2 {
				<-never
			}
			resp := zap.RPCResponse{Status: zap.StatusOK, Promise: req.Promise, Body: req.Payload}
			return resp.Append(dst), nil
		},
	}
}

func TestRPCOverAMuxOverPostQuantumTLS(t *testing.T) {
	t.Parallel()
	cert := selfSigned(t)
	pool := x509.NewCertPool()
	pool.AddCert(cert.Leaf)
	serverConfig := zap.PostQuantum(&tls.Config{Certificates: []tls.Certificate{cert}})
	l, err := tls.Listen("tcp", "127.0.0.1:0", serverConfig)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	never := make(chan struct{})
	defer close(never)
	go func() {
		for {
			nc, err := l.Accept()
			if err != nil {
				return
			}
			s := echoRPC(never)
			go s.Serve(nc)
		}
	}()
	client := &tls.Config{RootCAs: pool, ServerName: "localhost"}
	nc, err := tls.Dial("tcp", l.Addr().String(), zap.PostQuantum(client))
	if err != nil {
		t.Fatal(err)
	}
	if got := nc.ConnectionState().CurveID; got != tls.X25519MLKEM768 {
		t.Errorf("curve %v", got)
	}
	c := mux.New(nc, zap.RPCFraming{}, mux.Config{})
	defer c.Close()
	x := &zap.RPCCall{RPCRequest: zap.RPCRequest{Method: 1, Payload: []byte("hello")}}
	if err := c.Call(t.Context(), x); err != nil || x.Status != 200 || string(x.Body) != "hello" {
		t.Errorf("%d %q, %v", x.Status, x.Body, err)
	}
	// A read that times out leaves TLS in order: the next call is answered.
	short, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := c.Call(short, &zap.RPCCall{RPCRequest: zap.RPCRequest{Method: 2}}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a call that is not answered: %v", err)
	}
	if err := c.Call(t.Context(), x); err != nil || string(x.Body) != "hello" {
		t.Errorf("the next: %q, %v", x.Body, err)
	}
	classic := client.Clone()
	classic.CurvePreferences = []tls.CurveID{tls.X25519}
	if nc, err := tls.Dial("tcp", l.Addr().String(), classic); err == nil {
		nc.Close()
		t.Error("a client that offers only X25519 was let in")
	}
}

func selfSigned(t *testing.T) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	tpl := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{"localhost"}, NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, tpl, tpl, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}
}

func TestManyRPCCallersOnOneConnection(t *testing.T) {
	t.Parallel()
	a, b := loopback(t, "tcp")
	done := make(chan error, 1)
	go func() { done <- echoRPC(nil).Serve(b) }()
	c := mux.New(a, zap.RPCFraming{}, mux.Config{})
	var wg sync.WaitGroup
	for vu := range 64 {
		wg.Go(func() {
			x := &zap.RPCCall{RPCRequest: zap.RPCRequest{Method: 1}}
			for i := range 100 {
				x.Payload = fmt.Appendf(x.Payload[:0], "%d/%d", vu, i)
				if err := c.Call(t.Context(), x); err != nil || x.Status != 200 || !bytes.Equal(x.Body, x.Payload) {
					t.Errorf("%d %q instead of %q, %v", x.Status, x.Body, x.Payload, err)
					return
				}
			}
		})
	}
	wg.Wait()
	c.Close()
	b.Close()
	<-done
}

func TestAnRPCRequestTooLargeIsNotSent(t *testing.T) {
	t.Parallel()
	a, b := net.Pipe()
	defer b.Close()
	c := mux.New(a, zap.RPCFraming{Max: 1000}, mux.Config{})
	defer c.Close()
	x := &zap.RPCCall{RPCRequest: zap.RPCRequest{Payload: make([]byte, 1000)}}
	if err := c.Call(t.Context(), x); !errors.Is(err, zap.ErrTooLarge) || err.Error() != "request too long: zap: frame of 1045 bytes, at most 1000: too large" {
		t.Errorf("got %v", err)
	}
	if c.Err() != nil {
		t.Errorf("the connection died of it: %v", c.Err())
	}
}

func FuzzRPC(f *testing.F) {
	f.Add((&zap.RPCRequest{Method: 1, Promise: 7, Payload: []byte("pp")}).Append(nil))
	f.Add((&zap.RPCResponse{Status: 200, Promise: 7}).Append(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		in := mux.NewReader(bytes.NewReader(b), zap.RPCFraming{Max: 1 << 16})
		for {
			frame, err := in.Next()
			if err != nil {
				break
			}
			rpcFrame(t, frame)
		}
		rpcFrame(t, b)
	})
}

func rpcFrame(t *testing.T, b []byte) {
	var req, req2 zap.RPCRequest
	if req.Parse(b) == nil {
		if err := req2.Parse(req.Append(nil)); err != nil || !bytes.Equal(req.Payload, req2.Payload) || req.Promise != req2.Promise {
			t.Fatalf("%+v, then %+v, %v", req, req2, err)
		}
	}
	var resp, resp2 zap.RPCResponse
	id, idErr := zap.RPCFraming{}.ID(b)
	if resp.Parse(b) == nil {
		if err := resp2.Parse(resp.Append(nil)); err != nil || !bytes.Equal(resp.Body, resp2.Body) || resp.Promise != id || idErr != nil {
			t.Fatalf("%+v, then %+v, %v; promise %d, %v", resp, resp2, err, id, idErr)
		}
	}
}
