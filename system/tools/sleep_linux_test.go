package tools

import (
	"context"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
)

// timers counts the timer descriptors of this process.
func timers(t *testing.T) (n int) {
	t.Helper()
	all, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, fd := range all {
		if to, err := os.Readlink("/proc/self/fd/" + fd.Name()); err == nil && strings.Contains(to, "timerfd") {
			n++
		}
	}
	return n
}

// Waits that follow each other use the same descriptors; a wait that was broken off leaves none behind.
func TestWaitsKeepTheirTimers(t *testing.T) {
	const side = 4
	var wg sync.WaitGroup
	for range side {
		wg.Go(func() {
			for range 25 {
				begin := time.Now()
				if err := sleep(t.Context(), time.Millisecond); err != nil || time.Since(begin) < time.Millisecond {
					t.Errorf("a wait of 1 ms: %v after %v", err, time.Since(begin))
				}
			}
		})
	}
	wg.Wait()
	before := timers(t)
	for range 50 {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(100*time.Microsecond, cancel)
		if err := sleep(ctx, time.Minute); err != context.Canceled {
			t.Fatal(err)
		}
	}
	if after := timers(t); after > before {
		t.Errorf("%d timers after 50 waits that were broken off, %d before", after, before)
	}
	// The next one is not told that it is past.
	if err := sleep(t.Context(), time.Millisecond); err != nil {
		t.Error(err)
	}
}
