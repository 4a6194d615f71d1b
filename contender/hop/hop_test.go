package hop

import (
	"testing"
	"time"
)

func TestParse(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]Hop{
		"loopback": {Kind: Loopback}, "netns": {Kind: Netns}, "netns:5ms": {Kind: Netns, RTT: 5 * time.Millisecond},
	} {
		got, err := Parse(s)
		if err != nil || got != want || got.String() != s {
			t.Errorf("%s: %+v, %v", s, got, err)
		}
	}
	for s, want := range map[string]string{
		"":             `hop ""; expected loopback, netns or netns:5ms`,
		"wan":          `hop "wan"; expected loopback, netns or netns:5ms`,
		"netns:":       `hop "netns:"; expected netns and a round trip up to 2s, such as netns:5ms`,
		"netns:5":      `hop "netns:5"; expected netns and a round trip up to 2s, such as netns:5ms`,
		"netns:-5ms":   `hop "netns:-5ms"; expected netns and a round trip up to 2s, such as netns:5ms`,
		"netns:1h":     `hop "netns:1h"; expected netns and a round trip up to 2s, such as netns:5ms`,
		"loopback:5ms": `hop "loopback:5ms"; expected netns and a round trip up to 2s, such as netns:5ms`,
	} {
		if _, err := Parse(s); err == nil || err.Error() != want {
			t.Errorf("%q: got %v, want %s", s, err, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("netns:5ms")
	f.Fuzz(func(t *testing.T, s string) {
		h, err := Parse(s)
		if err == nil && (h.RTT < 0 || h.RTT > mostRTT) {
			t.Errorf("%q is %+v", s, h)
		}
	})
}
