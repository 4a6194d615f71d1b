package suite_test

import (
	"errors"
	"os"
	"os/exec"
	"testing"

	"toll/contender"
	"toll/contender/hop"
)

// A target in a network namespace of its own is another machine as far as the network goes.
func TestATargetBehindANetworkIsCalled(t *testing.T) {
	t.Parallel()
	link, err := hop.Open(t.Context(), hop.Hop{Kind: hop.Netns}, func() *exec.Cmd { return nil })
	if errors.Is(err, hop.ErrUnavailable) && os.Getenv("TOLL_RUN_ALL") == "" {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := link.Close(); err != nil {
			t.Error(err)
		}
	})
	spec, err := contender.Self("serve", "gateway-host", "--addr", link.Addr+":0")
	if err != nil {
		t.Fatal(err)
	}
	spec.Hop, spec.Host = link, link.Addr
	p, err := contender.Start(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Stop(t.Context()) })
	d := runAt(t, targetPlan("gateway", "echo", "plain", "nethttp", "toll"), hostport(p))
	costsKnown(t, d, 4)
}
