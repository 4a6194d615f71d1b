package driver_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"toll/driver"
	"toll/lab/load"
	"toll/lab/record"
)

// spawnFake answers as a spawn server does, unless it is told otherwise.
func spawnFake(t *testing.T, answer func(w http.ResponseWriter, path string, id int64, count int)) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var call struct {
			ID    int64 `json:"id"`
			Count int   `json:"count"`
		}
		if err := json.NewDecoder(r.Body).Decode(&call); err != nil {
			t.Error(err)
		}
		answer(w, r.URL.Path, call.ID, call.Count)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

func callSpawn(t *testing.T, s *driver.Spawn) (record.Shard, error) {
	t.Helper()
	c, err := s.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer load.Close(c)
	var shard record.Shard
	return shard, c.Call(t.Context(), shard.Mark())
}

func TestSpawnJudgesTheBody(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		`{"id":%d,"status":"ok","spawned":%d,"live":3,"child":"c-1","ready_ns":5,"gone_ns":6}`:                  "",
		`{"id":%d,"status":"ok","spawned":%d,"live":3,"child":"c-1000000","ready_ns":5,"gone_ns":6,"more":[1]}`: "",
		`{"id":%d,"status":"error","error":"no place","spawned":%d}`:                                            record.ErrorField,
		`{"id":%d,"status":"ok","error":"half of it","spawned":%d}`:                                             record.ErrorField,
		`{"id":1%d,"status":"ok","spawned":%d,"live":3,"child":"c","ready_ns":5,"gone_ns":6}`:                   record.WrongID,
		`{"status":"ok","spawned":%d,"live":%d,"child":"c"}`:                                                    record.WrongID,
		`{"id":%d,"status":"ok","spawned":1%d,"live":3,"child":"c","ready_ns":5,"gone_ns":6}`:                   record.WrongContent,
		`{"id":%d,"status":"ok","spawned":%d,"live":2,"child":"c","ready_ns":5,"gone_ns":6}`:                    record.WrongContent,
		`{"id":%d,"status":"ok","spawned":%d,"live":3,"ready_ns":5,"gone_ns":6}`:                                record.WrongContent,
		`{"id":%d,"status":"ok","spawned":%d,"live":3,"child":"c","ready_ns":-5,"gone_ns":6}`:                   record.WrongContent,
		`%d %d`: record.BadReply,
	} {
		addr := spawnFake(t, func(w http.ResponseWriter, path string, id int64, count int) {
			if path == "/v1/live" {
				fmt.Fprintf(w, `{"id":%d,"status":"ok","spawned":3,"live":3}`, id)
				return
			}
			fmt.Fprintf(w, body, id, count)
		})
		_, err := callSpawn(t, &driver.Spawn{Addr: addr, Path: "/v1/spawn", Count: 4, Live: 3})
		if want == "" && err != nil || want != "" && (err == nil || record.KindOf(err) != want) {
			t.Errorf("%s: got %v, want %q", body, err, want)
		}
	}
}

// A refused spawn that comes with status 200 is a failure, and one with an honest status too.
func TestSpawnSeesAFailureWhateverItsStatus(t *testing.T) {
	t.Parallel()
	for _, status := range []int{200, 503} {
		addr := spawnFake(t, func(w http.ResponseWriter, path string, id int64, count int) {
			if path == "/v1/live" {
				fmt.Fprintf(w, `{"id":%d,"status":"ok"}`, id)
				return
			}
			w.WriteHeader(status)
			fmt.Fprintf(w, `{"id":%d,"status":"error","error":"spawn child-9: max_children"}`, id)
		})
		_, err := callSpawn(t, &driver.Spawn{Addr: addr, Path: "/v1/spawn", Count: 1})
		if err == nil || record.KindOf(err) != record.ErrorField || !strings.Contains(err.Error(), "max_children") {
			t.Errorf("status %d: %v", status, err)
		}
	}
}

func TestSpawnWaitsUntilTheLastLevelHasGone(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	addr := spawnFake(t, func(w http.ResponseWriter, path string, id int64, _ int) {
		left := 3 - asked.Add(1) // children of the level before
		fmt.Fprintf(w, `{"id":%d,"status":"ok","spawned":7,"live":%d}`, id, 7+left)
	})
	c, err := (&driver.Spawn{Addr: addr, Path: "/v1/spawn", Count: 1, Live: 7}).Open(t.Context())
	if err != nil || asked.Load() != 3 {
		t.Fatalf("%v after %d questions", err, asked.Load())
	}
	load.Close(c)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := (&driver.Spawn{Addr: addr, Path: "/v1/spawn", Count: 1, Live: 9}).Open(ctx); err == nil {
		t.Error("opened while others live")
	}
}

func TestSpawnPartsAreTheServersOwnTimes(t *testing.T) {
	t.Parallel()
	addr := spawnFake(t, func(w http.ResponseWriter, path string, id int64, count int) {
		spawned := count
		if path == "/v1/noop" {
			spawned = 0
		}
		fmt.Fprintf(w, `{"id":%d,"status":"ok","spawned":%d,"live":0,"child":"c","ready_ns":5000,"gone_ns":6000}`, id, spawned)
	})
	for path, want := range map[string]string{"/v1/spawn": "gone ready", "/v1/noop": ""} {
		s := &driver.Spawn{Addr: addr, Path: path, Count: 2, Cold: true}
		c, err := s.Open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var shard record.Shard
		for range 3 {
			if p, ok := c.(load.Preparer); ok {
				if err := p.Prepare(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			if err := c.Call(t.Context(), shard.Mark()); err != nil {
				t.Fatal(err)
			}
		}
		load.Close(c)
		var names []string
		for name, h := range shard.Parts {
			names = append(names, name)
			if h.Count() != 3 {
				t.Errorf("part %s of %d calls", name, h.Count())
			}
		}
		if len(names) != len(strings.Fields(want)) {
			t.Errorf("%s: parts %v, want %q", path, names, want)
		}
	}
}

// A null target keeps no children and knows one id.
func TestSpawnTakesTheNullTargetsReply(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		nc, err := l.Accept()
		if err != nil {
			return
		}
		defer nc.Close()
		buf := make([]byte, 4096)
		for {
			if _, err := nc.Read(buf); err != nil {
				return
			}
			nc.Write(driver.SpawnReply())
		}
	}()
	s := &driver.Spawn{Addr: "http://" + l.Addr().String(), Path: "/v1/noop", Count: 16, Live: 1000, Null: true}
	if _, err := callSpawn(t, s); err != nil {
		t.Error(err)
	}
}
