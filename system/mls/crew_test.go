package mls

import (
	"bytes"
	"fmt"
	"testing"
	"time"
)

// A client of the tests: who it is and its group, nil before it joins.
type client struct {
	name   string
	config Config
	group  *Group
}

// testTime is when the tests happen.
func testTime() time.Time { return time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC) }

func newClient(t testing.TB, id Suite, name string) *client {
	t.Helper()
	identity := must(NewIdentity(id, Basic([]byte(name))))(t)
	return &client{name: name, config: Config{Identity: identity, Now: testTime}}
}

// seams lists those of this binary. A group of the tests has members on all of them.
func seams() []Seam {
	out := []Seam{FastCurves, StandardCurves}
	if _, ok := voiCurves(); ok {
		out = append(out, VoiCurves)
	}
	return out
}

// onSeams returns a suite on each of them; of what is not curve25519 there is one.
func onSeams(t testing.TB, id Suite) (out []*suite) {
	for _, seam := range seams() {
		s := must(suiteOf(id))(t)
		if !s.ed {
			return []*suite{s}
		}
		s.fast = must(curvesOf(seam))(t)
		out = append(out, s)
	}
	return out
}

func newClients(t testing.TB, id Suite, n int) []*client {
	out := make([]*client, n)
	for i := range out {
		out[i] = newClient(t, id, fmt.Sprintf("member %d", i))
		out[i].config.Identity = must(out[i].config.Identity.Use(seams()[i%len(seams())]))(t)
	}
	return out
}

func (c *client) bundle(t testing.TB) *Bundle { return must(c.config.NewKeyPackage())(t) }

// createGroup makes a group of all clients: the first creates it and adds the others with one commit.
func createGroup(t testing.TB, all []*client, o CommitOptions, extensions ...Extension) {
	t.Helper()
	all[0].group = must(Create(all[0].config, nil, extensions...))(t)
	if len(all) == 1 {
		return
	}
	bundles := make([]*Bundle, len(all))
	for i, c := range all[1:] {
		bundles[i+1] = c.bundle(t)
		o.Proposals = append(o.Proposals, Add(bundles[i+1].Package))
	}
	st := must(all[0].group.Commit(o))(t)
	tree := st.next.tree.append(nil)
	check(t, all[0].group.Accept(st))
	for i, c := range all[1:] {
		c.group = must(Join(c.config, st.Welcome, bundles[i+1], JoinOptions{Tree: tree}))(t)
	}
	agree(t, all)
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// agree fails unless everyone is in the same epoch with the same secrets, which really decrypt.
func agree(t testing.TB, all []*client) {
	t.Helper()
	first := all[0].group
	exported := must(first.Export("test", []byte("context"), 48))(t)
	for _, c := range all[1:] {
		if c.group.Epoch() != first.Epoch() || !bytes.Equal(c.group.EpochAuthenticator(), first.EpochAuthenticator()) {
			t.Fatalf("%s is in epoch %d, %s in epoch %d, or in another state", c.name, c.group.Epoch(), all[0].name, first.Epoch())
		}
		if !bytes.Equal(must(c.group.Export("test", []byte("context"), 48))(t), exported) {
			t.Fatalf("%s exports another secret", c.name)
		}
		if !bytes.Equal(c.group.Tree(), first.Tree()) {
			t.Fatalf("%s has another tree", c.name)
		}
	}
}

// open reads a message that must be good, and accepts it if it is a commit.
func (c *client) open(t testing.TB, message []byte) Event {
	t.Helper()
	event, err := c.group.Open(message)
	if err != nil {
		t.Fatalf("%s: %v", c.name, err)
	}
	if event.Commit != nil {
		check(t, c.group.Accept(event.Commit))
	}
	return event
}

// broadcast has everyone but the sender read a message.
func broadcast(t testing.TB, all []*client, from *client, message []byte) {
	t.Helper()
	for _, c := range all {
		if c != from {
			c.open(t, message)
		}
	}
}

// commit has a client commit and everyone follow; its staged commit is returned.
func commit(t testing.TB, all []*client, by *client, o CommitOptions) *Staged {
	t.Helper()
	st := must(by.group.Commit(o))(t)
	check(t, by.group.Accept(st))
	broadcast(t, all, by, st.Message)
	return st
}

// chat has everyone send a message that everyone else reads.
func chat(t testing.TB, all []*client) {
	t.Helper()
	for _, from := range all {
		text := []byte("from " + from.name)
		message := must(from.group.Seal(nil, []byte("aad"), text))(t)
		for _, to := range all {
			if to == from {
				continue
			}
			event := to.open(t, message)
			if !bytes.Equal(event.Application, text) || event.Sender.Index != from.group.Index() || string(event.Data) != "aad" {
				t.Fatalf("%s read %q of leaf %d", to.name, event.Application, event.Sender.Index)
			}
		}
	}
}

// eachSuite runs a test for every ciphersuite, with handshakes as private or as public messages; the first with both.
func eachSuite(t *testing.T, f func(t *testing.T, id Suite, public bool)) {
	run(t, append(Suites(), Suites()[0]), f)
}

// quickSuites is eachSuite without the one whose curve takes milliseconds.
func quickSuites(t *testing.T, f func(t *testing.T, id Suite, public bool)) {
	run(t, []Suite{X25519AES128, P256AES128, X25519ChaCha, P384AES256, X25519AES128}, f)
}

func run(t *testing.T, list []Suite, f func(t *testing.T, id Suite, public bool)) {
	for i, id := range list {
		if underRace && id != list[0] {
			continue
		}
		public := i%2 == 1
		if i > 0 && id == list[0] {
			public = true
		}
		t.Run(fmt.Sprintf("suite-%d-public-%v", id, public), func(t *testing.T) {
			t.Parallel()
			f(t, id, public)
		})
	}
}
