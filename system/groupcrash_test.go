package system_test

import (
	"bufio"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"toll/system/boltstore"
	"toll/system/mls"
)

// asMember has the test binary be a member of a group, with its store and key where the variable says.
const asMember = "TOLL_TEST_GROUP_MEMBER"

var crashText = []byte("a text")

// TestBeAMember is no test: it is the process that TestKillsReuseNoKeyAndLoseNoEpoch kills. It prints what leaves it, a
// line each, and takes orders.
func TestBeAMember(t *testing.T) {
	dir := os.Getenv(asMember)
	if dir == "" {
		return
	}
	if err := beAMember(dir, os.Stdin, os.Stdout); err != nil {
		fmt.Println("failed", err)
	}
}

func beAMember(dir string, in io.Reader, out io.Writer) error {
	seed, err := os.ReadFile(filepath.Join(dir, "seed"))
	if err != nil {
		return err
	}
	id, err := mls.ParseIdentity(mls.X25519AES128, mls.Basic([]byte("writer")), seed)
	if err != nil {
		return err
	}
	f, err := boltstore.Open(filepath.Join(dir, "groups"))
	if err != nil {
		return err
	}
	defer f.Close()
	g, err := mls.Restore(mls.Config{Identity: id}, f.Group([]byte("g")), mls.StoreOptions{Block: 8, Every: 4})
	if err != nil {
		return err
	}
	say := func(word string, data []byte) { fmt.Fprintf(out, "%s %d %x\n", word, g.Epoch(), data) }
	say("ready", g.EpochAuthenticator())
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		word, text, _ := strings.Cut(lines.Text(), " ")
		data, err := hex.DecodeString(text)
		if err != nil {
			return err
		}
		switch word {
		case "seal":
			m, err := g.Seal(nil, nil, crashText)
			if err != nil {
				return err
			}
			say("message", m)
		case "commit":
			st, err := g.Commit(mls.CommitOptions{})
			if err != nil {
				return err
			}
			say("staged", st.Message)
		case "accept":
			event, err := g.Open(data)
			if err != nil {
				return err
			}
			if err := g.Accept(event.Commit); err != nil {
				return err
			}
			say("accepted", g.EpochAuthenticator())
		}
	}
	return lines.Err()
}

// A victim is a process that is a member.
type victim struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

func startVictim(t *testing.T, dir string) *victim {
	t.Helper()
	v := &victim{cmd: exec.Command(os.Args[0], "-test.run", "^TestBeAMember$")}
	v.cmd.Env = append(os.Environ(), asMember+"="+dir)
	v.cmd.Stderr = os.Stderr
	var err error
	if v.in, err = v.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := v.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	v.out = bufio.NewReader(out)
	if err := v.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return v
}

// errKilled is that nothing came any more.
var errKilled = errors.New("killed")

func (v *victim) read(t *testing.T, want string) (epoch uint64, data []byte, err error) {
	t.Helper()
	line, err := v.out.ReadString('\n')
	if err != nil {
		return 0, nil, errKilled
	}
	var word, text string
	if n, _ := fmt.Sscan(line, &word, &epoch, &text); n != 3 || word != want {
		t.Fatalf("got %q, want %s", line, want)
	}
	if data, err = hex.DecodeString(text); err != nil {
		t.Fatal(err)
	}
	return epoch, data, nil
}

func (v *victim) ask(t *testing.T, order string, data []byte, want string) (uint64, []byte, error) {
	t.Helper()
	if _, err := fmt.Fprintf(v.in, "%s %x\n", order, data); err != nil {
		return 0, nil, errKilled
	}
	return v.read(t, want)
}

// TestKillsReuseNoKeyAndLoseNoEpoch kills a member of a group at any moment and looks at what left it before and after: the
// other member reads every message, and an epoch that was said to be accepted is there again. KILLS can be set.
func TestKillsReuseNoKeyAndLoseNoEpoch(t *testing.T) {
	t.Parallel()
	kills := 12
	if s := os.Getenv("KILLS"); s != "" {
		var err error
		if kills, err = strconv.Atoi(s); err != nil {
			t.Fatal(err)
		}
	}
	dir := t.TempDir()
	reader := newStoredGroup(t, dir)
	var reached uint64
	var commit []byte // that the reader accepted last
	sent := 0
	for kill := range kills {
		v := startVictim(t, dir)
		// The kill comes at any time from the start of the process on, and mostly within its work.
		timer := time.AfterFunc(time.Duration(rand.Int64N(int64(120*time.Millisecond))), func() { v.cmd.Process.Kill() })
		err := func() error {
			epoch, authenticator, err := v.read(t, "ready")
			if err != nil {
				return err
			}
			if epoch < reached {
				t.Fatalf("kill %d: epoch %d is back, %d was accepted", kill, epoch, reached)
			}
			for {
				if epoch < reader.Epoch() { // it does not know yet
					if epoch, authenticator, err = v.ask(t, "accept", commit, "accepted"); err != nil {
						return err
					}
				}
				reached = epoch
				if err := reader.CheckAuthenticator(epoch, authenticator); err != nil {
					t.Fatalf("kill %d: %v", kill, err)
				}
				for range rand.IntN(20) {
					_, m, err := v.ask(t, "seal", nil, "message")
					if err != nil {
						return err
					}
					sent++
					if _, err := reader.Open(m); err != nil {
						t.Fatalf("kill %d: message %d: %v", kill, sent, err)
					}
				}
				var m []byte
				if rand.IntN(2) == 0 {
					if _, m, err = v.ask(t, "commit", nil, "staged"); err != nil {
						return err
					}
					event, err := reader.Open(m)
					if err == nil {
						err = reader.Accept(event.Commit)
					}
					if err != nil {
						t.Fatalf("kill %d: a commit: %v", kill, err)
					}
				} else {
					st, err := reader.Commit(mls.CommitOptions{})
					if err == nil {
						m, err = st.Message, reader.Accept(st)
					}
					if err != nil {
						t.Fatal(err)
					}
				}
				commit = m
			}
		}()
		timer.Stop()
		if !errors.Is(err, errKilled) {
			t.Fatalf("kill %d: %v", kill, err)
		}
		v.in.Close()
		if err := v.cmd.Wait(); err == nil {
			t.Fatalf("kill %d: the process ended by itself", kill)
		}
	}
	t.Logf("%d kills, %d messages, %d epochs: no key used twice, no epoch lost", kills, sent, reached)
}

// newStoredGroup makes a group whose founder is in a store; it returns the other member.
func newStoredGroup(t *testing.T, dir string) *mls.Group {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	writer, err := mls.NewIdentity(mls.X25519AES128, mls.Basic([]byte("writer")))
	must(err)
	seed, err := writer.PrivateKey()
	must(err)
	must(os.WriteFile(filepath.Join(dir, "seed"), seed, 0o600))
	reader, err := mls.NewIdentity(mls.X25519AES128, mls.Basic([]byte("reader")))
	must(err)
	config := mls.Config{Identity: reader}
	bundle, err := config.NewKeyPackage()
	must(err)
	g, err := mls.Create(mls.Config{Identity: writer}, nil)
	must(err)
	st, err := g.Commit(mls.CommitOptions{Proposals: []mls.Proposal{mls.Add(bundle.Package)}})
	must(err)
	must(g.Accept(st))
	f, err := boltstore.Open(filepath.Join(dir, "groups"))
	must(err)
	must(g.Persist(f.Group([]byte("g")), mls.StoreOptions{}))
	must(f.Close())
	other, err := mls.Join(config, st.Welcome, bundle, mls.JoinOptions{})
	must(err)
	return other
}
