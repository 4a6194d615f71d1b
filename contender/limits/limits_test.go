package limits

import "testing"

func TestLimitsAreWritten(t *testing.T) {
	t.Parallel()
	for want, l := range map[string]Limits{
		"none":            {},
		"1 CPU":           {CPUs: 1},
		"0.5 CPU, 512MiB": {CPUs: .5, Memory: 512 << 20},
		"1GiB":            {Memory: 1 << 30},
		"5242881B":        {Memory: 5<<20 + 1},
	} {
		if got := l.String(); got != want {
			t.Errorf("%+v: got %q, want %q", l, got, want)
		}
	}
}

func TestWhatCantBeAskedFor(t *testing.T) {
	t.Parallel()
	for want, l := range map[string]Limits{
		"cpus: 0.001; expected 0.01 to 4096":        {CPUs: .001},
		"cpus: -1; expected 0.01 to 4096":           {CPUs: -1},
		"memory: 100 bytes; expected at least 4MiB": {Memory: 100},
		"memory: -5 bytes; expected at least 4MiB":  {Memory: -5},
	} {
		if err := l.Check(); err == nil || err.Error() != want {
			t.Errorf("%+v: got %v, want %s", l, err, want)
		}
	}
}

func TestParseSize(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]int64{"1GiB": 1 << 30, "512MiB": 512 << 20, "4KiB": 4096} {
		if got, err := ParseSize(s); err != nil || got != want {
			t.Errorf("%s: %d, %v", s, got, err)
		}
	}
	for _, s := range []string{"", "1", "1GB", "-1MiB", "0MiB", "1.5GiB", "99999999999GiB", "GiB", " 1GiB"} {
		want := `size "` + s + `"; expected a whole number of KiB, MiB or GiB, such as 512MiB`
		if _, err := ParseSize(s); err == nil || err.Error() != want {
			t.Errorf("%q: got %v", s, err)
		}
	}
}

func FuzzParseSize(f *testing.F) {
	f.Add("1GiB")
	f.Fuzz(func(t *testing.T, s string) {
		if n, err := ParseSize(s); err == nil && n <= 0 {
			t.Errorf("%q is %d", s, n)
		}
	})
}
