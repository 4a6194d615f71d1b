package mls

import "toll/wire/curve"

// A Seam is where the arithmetic of curve25519 comes from. All seams make the same keys and signatures of the same
// secrets, and accept the same signatures of others; a group's members need not have the same one.
type Seam uint8

// The seams. What is not curve25519 is the standard library's under all of them.
const (
	FastCurves     Seam = iota // wire/curve, the default: batches, expanded keys, tables of the base point, goroutines
	StandardCurves             // crypto/ecdh and crypto/ed25519, one operation after another
	VoiCurves                  // curve25519-voi, in binaries with the build tag voi
)

// String names the seam.
func (s Seam) String() string {
	switch s {
	case FastCurves:
		return "fast"
	case StandardCurves:
		return "standard"
	case VoiCurves:
		return "voi"
	}
	return "unknown"
}

// Curves is a seam that does more than single operations of the standard library.
type curves interface {
	signer(seed []byte) (edSigner, error)
	expand(public []byte) (edKey, bool)
	batch() edBatch
	base(private *[32]byte) [32]byte
}

type (
	// An edSigner appends signatures.
	edSigner interface {
		Sign(dst, message []byte) []byte
	}
	// An edKey is a public key that is used more than once.
	edKey interface {
		Verify(message, signature []byte) bool
	}
	// An edBatch is signatures that are verified together.
	edBatch interface {
		Add(public, message, signature []byte)
		Verify() bool
	}
)

// ownCurves is wire/curve.
type ownCurves struct{}

func (ownCurves) signer(seed []byte) (edSigner, error) { return curve.NewSigner(seed) }

func (ownCurves) expand(public []byte) (edKey, bool) { return curve.Expand(public) }

func (ownCurves) batch() edBatch { return new(curve.Batch) }

func (ownCurves) base(private *[32]byte) [32]byte { return curve.Base(private) }

// curvesOf returns what stands behind a seam, nil for the standard library.
func curvesOf(s Seam) (curves, error) {
	switch s {
	case FastCurves:
		return ownCurves{}, nil
	case StandardCurves:
		return nil, nil
	case VoiCurves:
		if c, ok := voiCurves(); ok {
			return c, nil
		}
		return nil, refuse(ErrArgument, "this binary has no curve25519-voi; build it with the tag voi")
	}
	return nil, refuse(ErrArgument, "seam %d is none of fast, standard and voi", s)
}

// Use returns the same identity on another seam.
func (i *Identity) Use(seam Seam) (*Identity, error) {
	fast, err := curvesOf(seam)
	if err != nil {
		return nil, err
	}
	s := *i.suite
	if s.fast = nil; s.ed {
		s.fast = fast
	}
	out := &Identity{Credential: i.Credential, suite: &s}
	k := *i.signer
	out.signer = &k
	return out, s.speed(&k)
}
