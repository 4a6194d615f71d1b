package env

import (
	"math"
	"runtime"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"toll/lab/result"
)

func of(load, cpu, mem, disk, stat string) counters {
	root := fstest.MapFS{}
	for name, s := range map[string]string{loadFile: load, pressureDir + "cpu": cpu, pressureDir + "memory": mem, pressureDir + "io": disk, statFile: stat} {
		if s != "" {
			root[name] = &fstest.MapFile{Data: []byte(s)}
		}
	}
	return readCounters(root)
}

func TestNoiseIsTheDifferenceOfCounters(t *testing.T) {
	t.Parallel()
	a := of("0.50 0 0 1/1 1", "some avg10=0 total=1000000\nfull avg10=0 total=5", "some avg10=9.99 total=7", "some avg10=0 total=0",
		"cpu  100 10 50 1000 5 3 2 20 40 0\ncpu0 0 0\ncpu1 0 0\nintr 5 1\nctxt 1000\n")
	b := of("1.50 0 0 1/1 1", "some avg10=0 total=1500000\nfull avg10=0 total=5", "some avg10=9.99 total=7", "some avg10=0 total=250000",
		"cpu  700 20 150 9000 900 13 22 60 400 0\ncpu0 0 0\ncpu1 0 0\nintr 5 1\nctxt 21000\n")
	// In 10 s on two processors: 740 ticks busy, 40 stolen.
	got := between(a, b, 10*time.Second, 5*time.Second)
	want := result.Noise{
		Load1Start: new(.5), Load1End: new(1.5), PSICPUSome: new(5.), PSIMemSome: new(0.), PSIIOSome: new(2.5),
		Steal: new(2.), OthersCPU: new(12.), ContextSwitches: new(int64(2000)),
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("noise (-want +got):\n%s", d)
	}
	if got := between(a, b, 10*time.Second, time.Minute); *got.OthersCPU != 0 {
		t.Errorf("others used %v %% when we used more than was counted", *got.OthersCPU)
	}
	if d := cmp.Diff(result.Noise{Load1Start: new(.5), Load1End: new(1.5)}, between(a, b, 0, 0)); d != "" {
		t.Errorf("in no time (-want +got):\n%s", d)
	}
}

func TestCountersThatGoBackTellNothing(t *testing.T) {
	t.Parallel()
	a := of("", "some total=10", "", "", "cpu 10 0 0 0 0 0 0 50 0 0\ncpu0 0\nctxt 10")
	b := of("", "some total=9", "", "", "cpu 30 0 0 0 0 0 0 40 0 0\ncpu0 0\nctxt 9")
	if d := cmp.Diff(result.Noise{OthersCPU: new(20.)}, between(a, b, time.Second, 0)); d != "" {
		t.Errorf("noise (-want +got):\n%s", d)
	}
}

func TestWhatIsNotCountedIsNil(t *testing.T) {
	t.Parallel()
	whole := of("1 1 1", "some total=10", "some total=10", "some total=10", "cpu 1 1 1 1 1 1 1 1\ncpu0 1\nctxt 1")
	none := of("", "", "", "", "")
	for _, broken := range []counters{
		none,
		of("x", "some", "some total=-1", "full total=1", "cpu 1 1 1 1 1 1 1 1\nctxt 1"),
		of("Inf", "some total=1e3", "total=1", "some total=99999999999999999999", "cpu 1 1 1 1 1 1 1 1\ncpu0 1"),
		of("-1", "", "", "", "cpu 1 1 1 1 1 1 x 1\ncpu0 1\nctxt 1"),
		of("", "", "", "", "cpu 99999999999999 1 1 1 1 1 1 1\ncpu0 1\nctxt 1"),
		of("", "", "", "", "cpu 1 1 1 1 1 1 1 1\ncpu0 1\nctxt many"),
	} {
		if broken != none {
			t.Errorf("counters were made of nonsense: %+v", broken)
		}
		if got := between(whole, broken, time.Second, 0); got != (result.Noise{Load1Start: whole.load}) {
			t.Errorf("noise of counters that are gone: %+v", got)
		}
	}
}

func TestAWatchEnds(t *testing.T) {
	t.Parallel()
	w := StartWatch()
	for range 2 {
		n := w.Stop(time.Hour)
		for name, v := range map[string]*float64{
			"load at start": n.Load1Start, "load at end": n.Load1End, "cpu pressure": n.PSICPUSome, "memory pressure": n.PSIMemSome,
			"io pressure": n.PSIIOSome, "steal": n.Steal, "others": n.OthersCPU,
		} {
			if v != nil && !(*v >= 0 && *v < math.Inf(1)) {
				t.Errorf("%s is %v", name, *v)
			}
		}
		if runtime.GOOS == "linux" && (n.OthersCPU == nil || *n.OthersCPU != 0 || n.Load1Start == nil) {
			t.Errorf("a watch on Linux, an hour of it ours: %+v", n)
		}
	}
}
