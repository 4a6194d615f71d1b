package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"toll/wire/http1"
)

// A SpawnServer spawns and despawns children of one class on request, over HTTP:
//
//	POST /v1/spawn {"id":7,"count":16}  →  {"id":7,"status":"ok","spawned":16,"live":0,"child":"child-15","ready_ns":…,"gone_ns":…}
//
// count children are spawned one after the other, each ready before the next, then despawned. ready_ns is the time from the
// request's arrival until the last was ready and gone_ns that of the despawns, by the server's own monotonic clock. live is
// how many others live. POST /v1/noop takes and answers the same and spawns nothing; POST /v1/live {"id":7,"count":1000}
// makes so many children live beside the requests'. An error is {"id":7,"status":"error","error":…} with a status of its own.
type SpawnServer struct {
	rt     *Runtime
	d      *Dynamic
	class  string
	close  func() error // of the isolation
	server *http1.Server
	last   atomic.Int64 // number of the next child

	mu   sync.Mutex
	live int // guarded by mu: children that stay
}

// The bounds of one request.
const (
	maxSpawnCount = 1024
	maxLive       = 1 << 20
)

// NewSpawnServer makes a server of class under a dynamic supervisor of its own; closing is called at the end, nil for nothing.
func NewSpawnServer(class Class, closing func() error) (*SpawnServer, error) {
	rt := New(Config{})
	d, err := rt.SuperviseDynamic(DynamicSpec{Name: "children", Classes: map[string]Class{"child": class}})
	if err != nil {
		return nil, err
	}
	s := &SpawnServer{rt: rt, d: d, class: "child", close: closing}
	s.server = http1.New(http1.Config{MaxHead: 16 << 10, MaxBody: 4 << 10}, s.answer)
	return s, nil
}

// Serve answers on l until Shutdown, and then returns nil.
func (s *SpawnServer) Serve(l net.Listener) error {
	if err := s.server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// Shutdown stops accepting, lets requests be answered until ctx ends, and ends all children.
func (s *SpawnServer) Shutdown(ctx context.Context) error {
	err := errors.Join(s.server.Shutdown(ctx), s.rt.Close(ctx))
	if s.close != nil {
		err = errors.Join(err, s.close())
	}
	return err
}

// A spawnCall is a request's body.
type spawnCall struct {
	ID    int64 `json:"id"`
	Count int   `json:"count"`
}

func (s *SpawnServer) answer(ctx context.Context, req *http1.Request, reply *http1.Reply) {
	accepted := time.Now()
	reply.ContentType = "application/json"
	var call spawnCall
	path := string(req.Path())
	limit := maxSpawnCount
	if path == "/v1/live" {
		limit = maxLive
	}
	switch {
	case path != "/v1/spawn" && path != "/v1/noop" && path != "/v1/live":
		refuseSpawn(reply, http.StatusNotFound, 0, fmt.Errorf("no route %.100q", path))
		return
	case string(req.Method) != http.MethodPost:
		refuseSpawn(reply, http.StatusMethodNotAllowed, 0, errors.New("POST only"))
		return
	}
	if err := json.Unmarshal(req.Body, &call); err != nil {
		refuseSpawn(reply, http.StatusBadRequest, 0, fmt.Errorf("body: %w", err))
		return
	}
	if call.Count < 0 || call.Count > limit || call.Count == 0 && path == "/v1/spawn" {
		refuseSpawn(reply, http.StatusBadRequest, call.ID, fmt.Errorf("count is %d; expected up to %d", call.Count, limit))
		return
	}
	var err error
	var done spawnDone
	switch path {
	case "/v1/spawn":
		done, err = s.spawn(ctx, call.Count, accepted)
	case "/v1/live":
		done.spawned, err = s.keep(ctx, call.Count)
	default:
		done.last = s.last.Add(1) - 1
	}
	if err != nil {
		refuseSpawn(reply, http.StatusServiceUnavailable, call.ID, err)
		return
	}
	reply.Body = done.append(reply.Body, call.ID, s.d.Len())
}

// A spawnDone is what a request did.
type spawnDone struct {
	spawned     int
	last        int64
	ready, gone time.Duration
}

func (d spawnDone) append(b []byte, id int64, live int) []byte {
	b = strconv.AppendInt(append(b, `{"id":`...), id, 10)
	b = strconv.AppendInt(append(b, `,"status":"ok","spawned":`...), int64(d.spawned), 10)
	b = strconv.AppendInt(append(b, `,"live":`...), int64(live), 10)
	b = strconv.AppendInt(append(b, `,"child":"child-`...), d.last, 10)
	b = strconv.AppendInt(append(b, `","ready_ns":`...), int64(d.ready), 10)
	b = strconv.AppendInt(append(b, `,"gone_ns":`...), int64(d.gone), 10)
	return append(b, '}')
}

func refuseSpawn(reply *http1.Reply, status int, id int64, err error) {
	reply.Status = status
	reply.Body, _ = json.Marshal(map[string]any{"id": id, "status": "error", "error": err.Error()})
}

// spawn spawns and despawns n children. Whatever happens none is left.
func (s *SpawnServer) spawn(ctx context.Context, n int, accepted time.Time) (done spawnDone, err error) {
	var few [16]Ref
	refs := few[:0]
	for range n {
		var r Ref
		if r, err = s.one(ctx, &done.last); err != nil {
			break
		}
		refs = append(refs, r)
	}
	ready := time.Now()
	for _, r := range refs {
		if e := s.d.StopRef(ctx, r, Now, nil); e != nil && err == nil {
			err = e
		}
	}
	done.spawned, done.ready, done.gone = len(refs), ready.Sub(accepted), time.Since(ready)
	return done, err
}

func (s *SpawnServer) one(ctx context.Context, last *int64) (Ref, error) {
	*last = s.last.Add(1) - 1
	var name [32]byte
	return s.d.Spawn(ctx, &SpawnRequest{Class: s.class, Name: string(strconv.AppendInt(append(name[:0], "child-"...), *last, 10))})
}

// keep makes n children live beside those of requests.
func (s *SpawnServer) keep(ctx context.Context, n int) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for ; s.live < n; s.live++ {
		if _, err := s.d.Spawn(ctx, &SpawnRequest{Class: s.class, Name: "live-" + strconv.Itoa(s.live)}); err != nil {
			return s.live, err
		}
	}
	for ; s.live > n; s.live-- {
		if err := s.d.Despawn(ctx, "live-"+strconv.Itoa(s.live-1)); err != nil {
			return s.live, err
		}
	}
	return s.live, nil
}
