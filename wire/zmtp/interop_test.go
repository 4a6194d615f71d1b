package zmtp_test

import (
	"bufio"
	"encoding/hex"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"toll/wire/zmtp"
)

// A peer is libzmq in another process.
type peer struct {
	t    *testing.T
	in   io.WriteCloser
	out  *bufio.Reader
	addr string
}

// libzmq starts a socket of libzmq's through Debian's pyzmq. Where that is not installed, the test says so; in CI it fails.
func libzmq(t *testing.T, args ...string) *peer {
	t.Helper()
	python := ""
	for _, p := range []string{"/usr/bin/python3", "python3"} {
		if exec.Command(p, "-c", "import zmq").Run() == nil {
			python = p
			break
		}
	}
	if python == "" {
		if os.Getenv("TOLL_RUN_ALL") != "" {
			t.Fatal("no python3 with pyzmq is installed")
		}
		t.Skip("no python3 with pyzmq is installed")
	}
	cmd := exec.CommandContext(t.Context(), python, append([]string{"testdata/peer.py"}, args...)...)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		cmd.Wait()
	})
	p := &peer{t: t, in: in, out: bufio.NewReader(out)}
	p.addr = p.line()
	return p
}

func (p *peer) line() string {
	p.t.Helper()
	line, err := p.out.ReadString('\n')
	if err != nil {
		p.t.Fatal(err)
	}
	return strings.TrimSuffix(line, "\n")
}

func (p *peer) say(words ...string) {
	p.t.Helper()
	if _, err := io.WriteString(p.in, strings.Join(words, "\t")+"\n"); err != nil {
		p.t.Fatal(err)
	}
}

func (p *peer) send(frames ...string) {
	p.t.Helper()
	words := []string{"send"}
	for _, f := range frames {
		words = append(words, hex.EncodeToString([]byte(f)))
	}
	p.say(words...)
	if got := p.line(); got != "sent" {
		p.t.Fatal(got)
	}
}

func (p *peer) recv() string {
	p.t.Helper()
	p.say("recv")
	var frames []string
	for _, f := range strings.Split(p.line(), "\t") {
		b, err := hex.DecodeString(f)
		if err != nil {
			p.t.Fatal(f)
		}
		frames = append(frames, string(b))
	}
	return strings.Join(frames, "|")
}

func TestLibzmqDealerToOurRouter(t *testing.T) {
	t.Parallel()
	for _, ours := range []bool{true, false} { // who listens
		router := socket(t, zmtp.Config{Type: zmtp.Router, Heartbeat: 2 * time.Second})
		var them *peer
		if ours {
			them = libzmq(t, "DEALER", "connect", listen(t, router), "identity=them", "heartbeat=2000")
		} else {
			them = libzmq(t, "DEALER", "bind", "tcp://127.0.0.1", "identity=them")
			connect(t, router, them.addr)
		}
		for _, body := range []string{"short", strings.Repeat("long", 1000), ""} {
			them.send("", body)
			if got := text(recv(t, router)); got != "them||"+body {
				t.Fatalf("got %.40q", got)
			}
			send(t, router, "them", body, "more", "")
			if got := them.recv(); got != body+"|more|" {
				t.Fatalf("got %.40q", got)
			}
		}
	}
}

func TestOurDealerToLibzmqRouter(t *testing.T) {
	t.Parallel()
	them := libzmq(t, "ROUTER", "bind", "tcp://127.0.0.1", "heartbeat=2000")
	dealer := socket(t, zmtp.Config{Type: zmtp.Dealer, Identity: "us"})
	connect(t, dealer, them.addr)
	big := strings.Repeat("x", 300_000)
	send(t, dealer, "", big)
	if got := them.recv(); got != "us||"+big {
		t.Fatalf("got %.40q", got)
	}
	them.send("us", "", big)
	if got := text(recv(t, dealer)); got != "|"+big {
		t.Fatalf("got %.40q", got)
	}
	them.say("echo", "500")
	for range 500 {
		send(t, dealer, "a", "b")
		if got := text(recv(t, dealer)); got != "a|b" {
			t.Fatalf("got %.40q", got)
		}
	}
	if got := them.line(); got != "echoed" {
		t.Fatal(got)
	}
}

func TestPubSubWithLibzmq(t *testing.T) {
	t.Parallel()
	pub := socket(t, zmtp.Config{Type: zmtp.XPub})
	them := libzmq(t, "SUB", "connect", listen(t, pub), "subscribe=a")
	if got := text(recv(t, pub)); got != "\x01a" {
		t.Fatalf("got %q", got)
	}
	send(t, pub, "b", "no")
	send(t, pub, "ab", "yes")
	if got := them.recv(); got != "ab|yes" {
		t.Fatalf("got %q", got)
	}

	theirs := libzmq(t, "XPUB", "bind", "tcp://127.0.0.1")
	sub := socket(t, zmtp.Config{Type: zmtp.Sub})
	if err := sub.Subscribe("c"); err != nil {
		t.Fatal(err)
	}
	connect(t, sub, theirs.addr)
	if got := theirs.recv(); got != "\x01c" {
		t.Fatalf("got %q", got)
	}
	theirs.send("d", "no")
	theirs.send("cd", "yes")
	if got := text(recv(t, sub)); got != "cd|yes" {
		t.Fatalf("got %q", got)
	}
	if err := sub.Unsubscribe("c"); err != nil {
		t.Fatal(err)
	}
	if got := theirs.recv(); got != "\x00c" {
		t.Fatalf("got %q", got)
	}
}

// libzmq's publishers and subscribers meet in our proxy, as they do in the published topology.
func TestLibzmqThroughOurProxy(t *testing.T) {
	t.Parallel()
	front, back, err := zmtp.NewProxy(zmtp.XSub, zmtp.XPub, zmtp.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { front.Close(); back.Close() })
	pub := libzmq(t, "XPUB", "connect", listen(t, front))
	sub := libzmq(t, "SUB", "connect", listen(t, back), "subscribe=q")
	if got := pub.recv(); got != "\x01q" {
		t.Fatalf("got %q", got)
	}
	pub.send("q1", "body")
	if got := sub.recv(); got != "q1|body" {
		t.Fatalf("got %q", got)
	}
}

func TestPlainWithLibzmq(t *testing.T) {
	t.Parallel()
	seen := make(chan string, 10)
	router := socket(t, zmtp.Config{Type: zmtp.Router, Plain: &zmtp.Plain{Accept: func(user, password string) error {
		seen <- user + ":" + password
		return nil
	}}})
	them := libzmq(t, "DEALER", "connect", listen(t, router), "user=u", "password=p", "identity=them")
	them.send("hello")
	if got := text(recv(t, router)); got != "them|hello" {
		t.Fatalf("got %q", got)
	}
	if got := <-seen; got != "u:p" {
		t.Errorf("got %q", got)
	}
}
