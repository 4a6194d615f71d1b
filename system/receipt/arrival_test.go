package receipt

import (
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"testing"

	"toll/wire/jcs"
)

func hexOf(b []byte) string { return hex.EncodeToString(b) }

// badArrivals are the bodies that get no receipt, with the exact status, code, byte and member.
func badArrivals() []struct {
	name, in string
	status   int
	want     string
} {
	good := arrivalJSON(testArrival(1))
	hash := testArrival(1).RequestHash
	with := func(old, new string) string { return strings.Replace(good, old, new, 1) }
	at := func(text, of string) int { return strings.Index(text, of) }
	twice := with(`"tenant":`, `"tenant":"x","tenant":`)
	lone := with("acme", `\ud800`)
	utf8 := with("acme", "\xff")
	zero, plus, under, huge := with(`"version":3`, `"version":03`), with(`"version":3`, `"version":+3`), with(`"version":3`, `"version":1_0`), with(`"version":3`, `"version":1e400`)
	deep := with(`"version":3`, `"version":`+strings.Repeat("[", 31)+strings.Repeat("]", 31))
	return []struct {
		name, in string
		status   int
		want     string
	}{
		{"empty", "", 400, "malformed at byte 0: empty"},
		{"not JSON", "hello", 400, "malformed at byte 0: syntax"},
		{"trailing data", good + "{}", 400, fmt.Sprintf("malformed at byte %d: trailing-data", len(good))},
		{"byte order mark", "\xEF\xBB\xBF" + good, 400, "malformed at byte 0: bom"},
		{"duplicate name", twice, 400, fmt.Sprintf("malformed at byte %d: duplicate-name", at(twice, `"tenant":"acme"`))},
		{"lone surrogate", lone, 400, fmt.Sprintf("malformed at byte %d: lone-surrogate", at(lone, `\ud800`))},
		{"invalid UTF-8", utf8, 400, fmt.Sprintf("malformed at byte %d: invalid-utf8", at(utf8, "\xff"))},
		{"leading zero", zero, 400, fmt.Sprintf("malformed at byte %d: number-syntax", at(zero, "03"))},
		{"plus sign", plus, 400, fmt.Sprintf("malformed at byte %d: number-syntax", at(plus, "+3"))},
		{"underscore", under, 400, fmt.Sprintf("malformed at byte %d: number-syntax", at(under, "_0"))},
		{"1e400", huge, 400, fmt.Sprintf("malformed at byte %d: number-range", at(huge, "1e400"))},
		{"nesting of 33", deep, 400, fmt.Sprintf("malformed at byte %d: too-deep", at(deep, "[[")+30)},
		{"cut short", good[:len(good)-1], 400, fmt.Sprintf("malformed at byte %d: unexpected-end", len(good)-1)},
		{"over 16 KiB", good + strings.Repeat(" ", MaxArrival), 413, "too_large at byte 16384: too-large"},
		{"an array", "[]", 422, "invalid: want an object"},
		{"unknown member", with(`"tenant"`, `"color":"red","tenant"`), 422, "invalid: /color: there is no such member; the schema is closed"},
		{"plaintext: body", with(`"tenant"`, `"body":"hello","tenant"`), 422, "invalid: /body: there is no such member; the schema is closed"},
		{"plaintext: prompt", with(`"tenant"`, `"prompt":"hello","tenant"`), 422, "invalid: /prompt: there is no such member; the schema is closed"},
		{"plaintext: headers", with(`"tenant"`, `"headers":{},"tenant"`), 422, "invalid: /headers: there is no such member; the schema is closed"},
		{"plaintext within the policy", with(`"version"`, `"text":"hello","version"`), 422, "invalid: /policy/text: there is no such member; the schema is closed"},
		{"a name to be escaped", with(`"tenant"`, `"a/b~c":1,"tenant"`), 422, "invalid: /a~1b~0c: there is no such member; the schema is closed"},
		{"missing member", with(`"tenant":"acme"`, `"zone":"acme"`), 422, "invalid: /tenant: is missing"},
		{"missing member of the policy", with(`,"version":3`, ``), 422, "invalid: /policy/version: is missing"},
		{"float", with(`"version":3`, `"version":3.5`), 422, "invalid: /policy/version: want an integer within 2^53-1"},
		{"integer beyond 2^53-1", with(`"version":3`, `"version":9007199254740992`), 422, "invalid: /policy/version: want an integer within 2^53-1"},
		{"negative integer", with(`"version":3`, `"version":-1`), 422, "invalid: /policy/version: want an integer from 0 to 2^53-1"},
		{"number for a string", with(`"acme"`, `1`), 422, "invalid: /tenant: want a string"},
		{"null for a string", with(`"acme"`, `null`), 422, "invalid: /tenant: want a string"},
		{"string for the policy", with(`{"id":"policy-7","version":3}`, `"p"`), 422, "invalid: /policy: want an object"},
		{"hash in capitals", with(hash, strings.ToUpper(hash)), 422, "invalid: /request_hash: want 64 lower-case hex digits"},
		{"hash too short", with(hash, hash[1:]), 422, "invalid: /request_hash: want 64 lower-case hex digits"},
		{"hash too long", with(hash, hash+"0"), 422, "invalid: /request_hash: want 64 lower-case hex digits"},
		{"empty id", with("request-00000001", ""), 422, "invalid: /request_id: is empty"},
		{"id of 129 bytes", with("request-00000001", strings.Repeat("x", 129)), 422, "invalid: /request_id: has 129 bytes; at most 128"},
		{"tenant of 65 bytes", with("acme", strings.Repeat("x", 65)), 422, "invalid: /tenant: has 65 bytes; at most 64"},
		{"control character", with("acme", `a\u0007b`), 422, "invalid: /tenant: has a control character"},
		{"delete", with("acme", "a\x7f"), 422, "invalid: /tenant: has a control character"},
		{"C1 control character", with("acme", `a\u0085`), 422, "invalid: /tenant: has a control character"},
	}
}

func arrivalJSON(a Arrival) string {
	return fmt.Sprintf(`{"namespace":%q,"policy":{"id":%q,"version":%d},"request_hash":%q,"request_id":%q,"tenant":%q}`,
		a.Namespace, a.PolicyID, a.PolicyVersion, a.RequestHash, a.RequestID, a.Tenant)
}

func TestBadArrivals(t *testing.T) {
	t.Parallel()
	if got, err := ParseArrival([]byte(arrivalJSON(testArrival(1)))); err != nil || got != testArrival(1) {
		t.Fatalf("%+v, %v", got, err)
	}
	for _, c := range badArrivals() {
		_, err := ParseArrival([]byte(c.in))
		var r *Refusal
		if !errors.As(err, &r) || r.Status() != c.status || err.Error() != c.want {
			t.Errorf("%s: %.60q\n got %v\nwant %d %s", c.name, c.in, err, c.status, c.want)
		}
	}
}

func TestNamesMayHoldAnyLetter(t *testing.T) {
	t.Parallel()
	a := testArrival(1)
	a.Tenant, a.Namespace, a.RequestID = "Ünïcode 漢字", `quo"te\`, "😀"
	r, err := open(t, Config{}).Sign(t.Context(), a)
	if err != nil {
		t.Fatal(err)
	}
	if v := wantVerdict(t, &Verifier{Pins: pinned(testKey(t, "key"))}, r, Valid); v.Envelope.Arrival != a {
		t.Errorf("got %+v", v.Envelope)
	}
	a.Tenant = "\xff"
	if _, err := open(t, Config{}).Sign(t.Context(), a); err == nil || err.Error() != "invalid: /tenant: is not UTF-8" {
		t.Errorf("got %v", err)
	}
}

// The envelope's own appender gives what the canonicalizer gives, whatever the names.
func TestEnvelopesAreCanonical(t *testing.T) {
	t.Parallel()
	for i, name := range []string{"plain", `quo"te`, `back\\slash`, "漢字", "😀", "\u2028", "a/b", "<&>"} {
		a := testArrival(i)
		a.Tenant, a.Namespace, a.PolicyID, a.RequestID, a.PolicyVersion = name, name+"n", name+"p", name+"r", int64(i)*1_000_000_007
		env, err := appendEnvelope(nil, &a, testName, "kid", []byte("2026-12-01T00:00:00.000Z"), int64(i)<<40, int64(i))
		if err != nil {
			t.Fatal(err)
		}
		again, err := jcs.Append(nil, env, jcs.Limits{})
		if err != nil || string(again) != string(env) {
			t.Errorf("%s canonicalizes to %s, %v", env, again, err)
		}
		if e, err := parseEnvelope(env); err != nil || e.Arrival != a || e.Seq != int64(i)<<40 || e.Epoch != int64(i) {
			t.Errorf("%s reads as %+v, %v", env, e, err)
		}
	}
}

func FuzzArrival(f *testing.F) {
	f.Add([]byte(arrivalJSON(testArrival(1))))
	for _, c := range badArrivals() {
		if len(c.in) < 1000 {
			f.Add([]byte(c.in))
		}
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		a, err := ParseArrival(text)
		var r *Refusal
		if err != nil {
			if !errors.As(err, &r) || r.Status() < 400 || r.Status() > 422 || r.Offset > len(text) {
				t.Fatalf("%q: %v", text, err)
			}
			return
		}
		env, err := appendEnvelope(nil, &a, testName, "kid", []byte("2026-12-01T00:00:00.000Z"), 1, 1)
		if err != nil || len(env) > maxEnvelope || string(hashOf(env)) != a.RequestHash {
			t.Fatalf("%q: envelope of %d bytes, %v: %s", text, len(env), err, env)
		}
	})
}
