package opserver

import (
	"context"
	"crypto/tls"
	"net"
	"sync/atomic"

	"toll/wire/mux"
	"toll/wire/opcall"
	"toll/wire/zap"
)

// PostQuantum returns a copy of cfg that speaks TLS 1.3 with X25519MLKEM768 and nothing else.
func PostQuantum(cfg *tls.Config) *tls.Config { return zap.PostQuantum(cfg) }

// NewZAP makes a server of ops in ZAP-HTTP frames: op-calls, one after another on a connection.
func NewZAP(cfg Config, ops Registry) *Floor {
	cfg = cfg.withDefaults()
	errs := newErrorCodec()
	ok := []zap.Pair{{Name: []byte("Content-Type"), Value: []byte(opcall.MediaType)}}
	return newFloor(cfg, func(nc net.Conn, done *atomic.Int64) {
		// An error has no answer in this protocol: the connection ends.
		zap.ServeHTTPFrames(nc, int(cfg.MaxBody)+cfg.MaxHead, func(req *zap.Request, resp *zap.Response) {
			resp.Headers = append(resp.Headers, ok...)
			status := 200
			switch name, err := opcall.Name(string(req.Target)); {
			case err != nil:
				status, resp.Body = binaryError(errs, resp.Body, &Error{NotFound, "nothing at this path"})
			case string(req.Method) != "POST":
				status, resp.Body = binaryError(errs, resp.Body, &Error{methodNotAllowed, "want POST"})
			case int64(len(req.Body)) > cfg.MaxBody:
				status, resp.Body = binaryError(errs, resp.Body, &Error{TooLarge, "body too large"})
			default:
				status, resp.Body = callBinary(context.Background(), ops, errs, name, req.Body, resp.Body)
			}
			resp.Status = uint16(status)
		}, func() { done.Add(1) })
	})
}

// NewZAPRPC makes a server of ops in ZAP-RPC frames: method 1 is the registry's first operation, and so on; many calls may
// be under way on one connection.
func NewZAPRPC(cfg Config, ops Registry) *Floor {
	cfg = cfg.withDefaults()
	errs := newErrorCodec()
	return newFloor(cfg, func(nc net.Conn, done *atomic.Int64) {
		var req zap.RPCRequest // owned by the reading goroutine: every operation is quick
		var body []byte
		s := mux.Server{
			Framing:      zap.RPCFraming{Max: int(cfg.MaxBody) + cfg.MaxHead},
			WriteTimeout: cfg.WriteTimeout,
			Quick:        func([]byte) bool { return true },
			Answered:     func(n int) { done.Add(int64(n)) },
			Handle: func(dst, frame []byte) ([]byte, error) {
				if err := req.Parse(frame); err != nil {
					return nil, err
				}
				status := zap.StatusOK
				resp := zap.RPCResponse{Promise: req.Promise}
				if i := int(req.Method) - 1; req.Target != 0 {
					status, body = binaryError(errs, body[:0], &Error{Malformed, "no promises are kept here"})
				} else if i < 0 || i >= len(ops.ops) {
					status, body = binaryError(errs, body[:0], &Error{NotFound, "no such method"})
				} else if out, err := ops.ops[i].CallBinary(context.Background(), req.Payload, body[:0]); err != nil {
					status, body = binaryError(errs, body[:0], err)
				} else {
					body = out
				}
				resp.Status, resp.Body = uint32(rpcStatus(status)), body
				return resp.Append(dst), nil
			},
		}
		s.Serve(nc)
	})
}

// rpcStatus maps an HTTP status to the few that ZAP-RPC has.
func rpcStatus(status int) int {
	switch status {
	case 200, 401, 403, 404, 500:
		return status
	}
	if status < 500 {
		return zap.StatusBadRequest
	}
	return zap.StatusInternal
}
