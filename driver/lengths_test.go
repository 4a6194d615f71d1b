package driver_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"toll/driver"
)

// The story of the 491 failures, and what a client that reads the body says of the same replies.
func TestACounterInABodyBecomes491Failures(t *testing.T) {
	t.Parallel()
	var n, broken atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		status := "ok"
		if broken.Load() > 0 {
			status = "no"
		}
		fmt.Fprintf(w, `{"id":1,"status":%q,"child":"child-%d"}`, status, n.Add(1)-1)
	}))
	t.Cleanup(s.Close)
	check := func(requests, wantDiffer, wantFailed int) {
		t.Helper()
		differ, failed, err := driver.Lengths(t.Context(), s.URL, "/", requests)
		if err != nil || differ != wantDiffer || failed != wantFailed {
			t.Errorf("%d requests: %d of another length, %d failed, %v; want %d and %d", requests, differ, failed, err, wantDiffer, wantFailed)
		}
	}
	check(1, 0, 0)
	check(500, 491, 0)
	check(500, 1, 0)
	broken.Store(1)
	check(500, 0, 500)
}
