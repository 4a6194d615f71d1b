package plan_test

import (
	"testing"

	"toll/lab/plan"
)

func TestSharesThatAreNone(t *testing.T) {
	t.Parallel()
	const head = `schema: toll.plan/v1
benchmark: gateway
cases: [echo]
phases: [below, above]
contenders: [toll, nethttp]
baseline: nethttp
`
	for load, want := range map[string]string{
		"model: open\nduration: 1s\nshares: {below: 0.5}":                     "shares: phase above has none",
		"model: open\nduration: 1s\nshares: {below: 0.5, above: 4, plain: 1}": `shares: "plain" is none of the phases below, above`,
		"model: open\nduration: 1s\nshares: {below: 0, above: 4}":             "shares: below is 0; expected more than 0 and at most 100 times the capacity",
		"model: open\nduration: 1s\nshares: {below: .nan, above: 4}":          "shares: below is NaN; expected more than 0 and at most 100 times the capacity",
		"model: open\nduration: 1s\nshares: {below: 0.5, above: 101}":         "shares: above is 101; expected more than 0 and at most 100 times the capacity",
		"model: open\nshares: {below: 0.5, above: 4}":                         "the model is open; expected for how long the rate is held",
		"model: open\nduration: 1s\nrate: 5\nshares: {below: 0.5, above: 4}":  "shares of a capacity beside a rate or stages; expected one of them",
		"duration: 1s\nshares: {below: 0.5, above: 4}":                        "shares is given, but the model is closed; expected model: open",
	} {
		_, err := plan.Parse("p.yaml", []byte(head+load))
		se, ok := err.(*plan.SyntaxError)
		if !ok || se.Msg != want {
			t.Errorf("%q:\n got %v\nwant %s", load, err, want)
		}
	}
}
