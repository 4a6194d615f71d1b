package plan

import "testing"

func TestAFieldThatIsNearlyOneIsNamed(t *testing.T) {
	for name, want := range map[string]string{
		"contendrs":  `; did you mean "contenders"?`,
		"round":      `; did you mean "rounds"?`,
		"cpu":        `; did you mean "cpus"?`, // of limits, within the plan
		"x":          ``,
		"completely": ``,
	} {
		if got := meant(name, new(Plan)); got != want {
			t.Errorf("%s: %q; want %q", name, got, want)
		}
	}
}
