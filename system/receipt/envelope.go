package receipt

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"
	"time"

	"toll/wire/jcs"
)

// The constants of an envelope.
const (
	version     = 1
	algorithm   = "Ed25519"
	typeArrival = "arrival"
	typeRotate  = "rotation"
)

// An Envelope is what is signed. The algorithm, the key and the type stand inside it, so that none can be exchanged.
type Envelope struct {
	Arrival
	ArrivedAt time.Time // by the gateway's clock, ms
	Epoch     int64     // grows each time a gateway opens its log
	Gateway   string
	KID       string // RFC 7638 thumbprint of the key
	Seq       int64  // its place in the gateway's one sequence, and in its log's tree
	Type      string
	NewKID    string // of a rotation
	NewX      string // of a rotation: the new public key, base64url
	X         string // of a rotation: the old public key
	Alg       string
}

// A template is what all envelopes of a gateway have in common, in canonical form.
type template struct {
	middle []byte // from behind the epoch to the namespace's text
}

// newTemplate makes the template of a gateway and key.
func newTemplate(gateway, kid string) template {
	b, _ := jcs.AppendString([]byte(`,"gateway":`), gateway)
	b, _ = jcs.AppendString(append(b, `,"kid":`...), kid)
	return template{append(b, `,"namespace":`...)}
}

// append appends the canonical form of an arrival's envelope; at is its time, formatted. A test holds it against a
// canonicalizer.
func (t template) append(dst []byte, a *Arrival, at []byte, seq, epoch int64) ([]byte, error) {
	dst = append(append(dst, `{"alg":"Ed25519","arrived_at":"`...), at...)
	dst = strconv.AppendInt(append(dst, `","epoch":`...), epoch, 10)
	dst, ok := jcs.AppendString(append(dst, t.middle...), a.Namespace)
	dst, ok2 := jcs.AppendString(append(dst, `,"policy":{"id":`...), a.PolicyID)
	dst = strconv.AppendInt(append(dst, `,"version":`...), a.PolicyVersion, 10)
	dst = append(append(dst, `},"request_hash":"`...), a.RequestHash...)
	dst, ok3 := jcs.AppendString(append(dst, `","request_id":`...), a.RequestID)
	dst = strconv.AppendInt(append(dst, `,"seq":`...), seq, 10)
	dst, ok4 := jcs.AppendString(append(dst, `,"tenant":`...), a.Tenant)
	if !ok || !ok2 || !ok3 || !ok4 {
		return dst, errors.New("a name is not UTF-8")
	}
	return append(dst, `,"type":"arrival","v":1}`...), nil
}

// appendEnvelope is append of a template made for it alone.
func appendEnvelope(dst []byte, a *Arrival, gateway, kid string, at []byte, seq, epoch int64) ([]byte, error) {
	return newTemplate(gateway, kid).append(dst, a, at, seq, epoch)
}

// appendRotation appends the canonical form of the envelope by which kid hands over to another key.
func appendRotation(dst []byte, gateway, kid, x, newKID, newX string, at []byte, seq, epoch int64) ([]byte, error) {
	o := jcs.Begin(dst)
	o.String("alg", algorithm)
	o.Bytes("arrived_at", at)
	o.Int("epoch", epoch)
	o.String("gateway", gateway)
	o.String("kid", kid)
	o.String("new_kid", newKID)
	o.String("new_x", newX)
	o.Int("seq", seq)
	o.String("type", typeRotate)
	o.Int("v", version)
	o.String("x", x)
	return o.End()
}

// timeLayout is RFC 3339 with milliseconds, in UTC.
const timeLayout = "2006-01-02T15:04:05.000Z"

var errTime = errors.New("want a time like 2026-12-01T00:00:00.000Z")

// parseEnvelope reads an envelope in canonical form.
func parseEnvelope(canonical []byte) (e Envelope, err error) {
	var v int64
	same := func(b []byte) error {
		text, _ := jcs.Text(b)
		e.ArrivedAt, err = time.Parse(timeLayout, string(text))
		if err != nil || e.ArrivedAt.Format(timeLayout) != string(text) {
			return errTime
		}
		return nil
	}
	fields := []field{
		{"alg", into(&e.Alg)}, {"arrived_at", same}, {"epoch", intoInt(&e.Epoch)}, {"gateway", into(&e.Gateway)}, {"kid", into(&e.KID)},
	}
	rotation := bytes.Contains(canonical, []byte(`,"type":"`+typeRotate+`",`))
	if rotation {
		fields = append(fields, field{"new_kid", into(&e.NewKID)}, field{"new_x", into(&e.NewX)}, field{"seq", intoInt(&e.Seq)})
	} else {
		fields = append(fields, field{"namespace", into(&e.Namespace)}, field{"policy", func(v []byte) error {
			return closed(v, "/envelope/policy", []field{{"id", into(&e.PolicyID)}, {"version", intoInt(&e.PolicyVersion)}})
		}}, field{"request_hash", into(&e.RequestHash)}, field{"request_id", into(&e.RequestID)}, field{"seq", intoInt(&e.Seq)},
			field{"tenant", into(&e.Tenant)})
	}
	fields = append(fields, field{"type", into(&e.Type)}, field{"v", intoInt(&v)})
	if rotation {
		fields = append(fields, field{"x", into(&e.X)})
	}
	if err := closed(canonical, "/envelope", fields); err != nil {
		return e, err
	}
	switch {
	case v != version:
		return e, invalid("/envelope/v", "is %d; this reads %d", v, version)
	case e.Type != typeArrival && e.Type != typeRotate:
		return e, invalid("/envelope/type", "is %q; want %s or %s", e.Type, typeArrival, typeRotate)
	case e.Seq < 0 || e.Epoch < 0:
		return e, invalid("/envelope/seq", "seq and epoch are never negative")
	case e.Type == typeArrival:
		return e, e.check()
	}
	return e, nil
}

// hashOf returns the request hash of an envelope in canonical form. A quote within a string is escaped there, so the name can
// stand only where the member does.
func hashOf(envelope []byte) []byte {
	const name = `"request_hash":"`
	i := bytes.Index(envelope, []byte(name))
	if i < 0 || i+len(name)+hashDigits > len(envelope) {
		return nil
	}
	return envelope[i+len(name) : i+len(name)+hashDigits]
}

// MarshalJSON writes the envelope's members.
func (e Envelope) MarshalJSON() ([]byte, error) {
	at := []byte(e.ArrivedAt.UTC().Format(timeLayout))
	if e.Type == typeRotate {
		return appendRotation(nil, e.Gateway, e.KID, e.X, e.NewKID, e.NewX, at, e.Seq, e.Epoch)
	}
	return appendEnvelope(nil, &e.Arrival, e.Gateway, e.KID, at, e.Seq, e.Epoch)
}

var _ json.Marshaler = Envelope{}
