package driver

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"toll/lab/record"
)

// scan feeds a scanner so many bytes at a time, then the end.
func scan(in, method string, maxBody int64, step int) (Reply, error) {
	s := &scanner{maxBody: maxBody}
	for rest := in; ; {
		n := copy(s.room(), rest[:min(step, len(rest))])
		s.w += n
		rest = rest[n:]
		reply, ok, err := s.next(method, n == 0)
		if ok || err != nil {
			if ok && rest != "" {
				err = bad("%d bytes behind the reply", len(rest))
			}
			return reply, err
		}
		if n == 0 {
			return Reply{}, fmt.Errorf("neither a reply nor an error at the end of %q", in)
		}
	}
}

func TestScannerRefusesWhatTheReaderRefuses(t *testing.T) {
	t.Parallel()
	for _, tt := range refusedReplies() {
		want, _, _ := strings.Cut(tt.want, ":")
		for _, step := range []int{1, 7, 1 << 20} {
			if _, err := scan(tt.in, "GET", 100, step); err == nil || record.KindOf(err) != want {
				t.Errorf("%d bytes at a time, %q: got %v, want kind %s", step, tt.in, err, want)
			}
		}
	}
}

func TestScannerAgreesWithNetHTTP(t *testing.T) {
	t.Parallel()
	for _, in := range validReplies {
		for _, method := range []string{"GET", "HEAD"} {
			for _, step := range []int{1, 13, 1 << 20} {
				got, err := scan(in, method, 1<<20, step)
				if method == "HEAD" && err != nil && strings.Contains(err.Error(), "behind the reply") {
					continue // a reply to HEAD that has a body all the same
				}
				if err != nil {
					t.Errorf("%d bytes at a time, %s %q: %v", step, method, in, err)
					continue
				}
				sameAsOracle(t, in, method, got)
			}
		}
	}
}

// One connection carries many replies; a head that comes again is not parsed again, and must give the same.
func TestScannerOnAConnection(t *testing.T) {
	t.Parallel()
	s := &scanner{maxBody: 1 << 20}
	for round := range 3 {
		for _, in := range validReplies {
			if strings.Contains(in, "until close") {
				continue
			}
			var got Reply
			for rest := in; rest != ""; {
				n := copy(s.room(), rest[:min(1000, len(rest))])
				s.w += n
				rest = rest[n:]
				reply, ok, err := s.next("GET", false)
				if err != nil || ok != (rest == "") {
					t.Fatalf("round %d, %.60q: complete %v with %d bytes to come, %v", round, in, ok, len(rest), err)
				}
				got = reply
			}
			sameAsOracle(t, in, "GET", got)
		}
	}
}

func TestScannerDoesNotAllocate(t *testing.T) {
	in := []byte(ok + "Content-Length: 2\r\nServer: x\r\n\r\n{}")
	s := &scanner{maxBody: 1 << 20}
	if n := testing.AllocsPerRun(100, func() {
		s.w += copy(s.room(), in)
		if _, ok, err := s.next("GET", false); !ok || err != nil {
			t.Fatal(ok, err)
		}
	}); n != 0 {
		t.Errorf("%v allocations a reply", n)
	}
}

func FuzzScanner(f *testing.F) {
	for _, in := range validReplies {
		f.Add(in, 5)
	}
	for _, tt := range refusedReplies() {
		f.Add(tt.in, 3)
	}
	f.Fuzz(func(t *testing.T, in string, step int) {
		want, wantErr := read(strings.NewReader(in), "GET", 1<<16)
		got, err := scan(in, "GET", 1<<16, max(step, 1))
		switch {
		case wantErr != nil && err == nil:
			t.Errorf("%q: the reader says %v, the scanner takes it", in, wantErr)
		case wantErr != nil:
		case err != nil && !strings.Contains(err.Error(), "behind the reply"):
			t.Errorf("%q: the reader takes it, the scanner says %v", in, err)
		case err == nil && (got.Status != want.Status || !bytes.Equal(got.Body, want.Body)):
			t.Errorf("%q:\ngot  %+v\nwant %+v", in, got, want)
		}
	})
}
