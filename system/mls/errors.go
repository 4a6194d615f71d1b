package mls

import (
	"errors"
	"fmt"
)

// What a message, a tree or an argument is refused for. Each is found with errors.Is.
var (
	ErrMalformed    = errors.New("malformed")                       // the bytes do not decode (§2.1), or a field has a value it cannot have
	ErrSuite        = errors.New("ciphersuite not supported")       // §5.1
	ErrVersion      = errors.New("protocol version not supported")  // §6
	ErrKey          = errors.New("bad key")                         // not a point of the curve, or one of small order
	ErrSignature    = errors.New("bad signature")                   // §5.1.2
	ErrMAC          = errors.New("bad MAC")                         // membership tag (§6.2) or confirmation tag (§8.1)
	ErrDecrypt      = errors.New("cannot decrypt")                  // an AEAD or HPKE open failed (§6.3, §7.6, §12.4.3.1)
	ErrWrongGroup   = errors.New("wrong group")                     // group_id is another group's
	ErrPastEpoch    = errors.New("past epoch")                      // older than the window of retained epochs
	ErrFutureEpoch  = errors.New("future epoch")                    // newer than ours: a commit is missing
	ErrForked       = errors.New("forked")                          // the same epoch number with another state
	ErrReplayed     = errors.New("replayed")                        // the generation's key was consumed (§9.2)
	ErrTooFarAhead  = errors.New("generation too far ahead")        // beyond the window of §15.3
	ErrTooOld       = errors.New("generation too old")              // its key left the reorder window
	ErrOwnMessage   = errors.New("own message")                     // encrypted by ourselves: its key was consumed when it was sent
	ErrSender       = errors.New("bad sender")                      // no such member, or one who may not send this (§6.1, §12.1.8)
	ErrLeaf         = errors.New("bad leaf node")                   // §7.3
	ErrKeyPackage   = errors.New("bad key package")                 // §10.1
	ErrProposals    = errors.New("bad proposal list")               // §12.2
	ErrProposal     = errors.New("bad proposal")                    // §12.1
	ErrUnknown      = errors.New("unknown proposal reference")      // §12.4: the proposal was not received in this epoch
	ErrPath         = errors.New("bad update path")                 // §7.6, §12.4
	ErrTree         = errors.New("bad ratchet tree")                // §7.8, §7.9, §12.4.3.1
	ErrPSK          = errors.New("bad pre-shared key")              // §8.4
	ErrWelcome      = errors.New("bad welcome")                     // §12.4.3.1
	ErrGroupInfo    = errors.New("bad group info")                  // §12.4.3
	ErrInactive     = errors.New("group is not active")             // we were removed, or it was reinitialised (§11.2)
	ErrStale        = errors.New("staged commit of another epoch")  // Accept after the epoch changed
	ErrPending      = errors.New("proposals are pending")           // §12.4: commit before application data
	ErrArgument     = errors.New("bad argument")                    // a caller's own mistake
	ErrGenerations  = errors.New("sender ratchet is used up")       // 2^32 generations of one epoch
	ErrCapabilities = errors.New("capabilities not supported")      // §7.2, §11.1; wrapped by ErrLeaf or ErrProposals
	ErrDuplicate    = errors.New("duplicate key")                   // §7.3, §12.4.3.1; wrapped likewise
	ErrLifetime     = errors.New("outside its lifetime")            // §7.2; wrapped by ErrLeaf
	ErrCredential   = errors.New("credential not accepted")         // §5.3.1; wrapped by ErrLeaf
	ErrParentHash   = errors.New("parent hash does not match")      // §7.9; wrapped by ErrTree or ErrPath
	ErrTreeHash     = errors.New("tree hash does not match")        // §7.8; wrapped by ErrTree
	ErrSource       = errors.New("leaf node from the wrong source") // §7.3; wrapped by ErrLeaf
	ErrConfirmation = errors.New("confirmation tag does not match") // §8.1; wrapped by ErrMAC
	ErrMembership   = errors.New("membership tag does not match")   // §6.2; wrapped by ErrMAC
	ErrState        = errors.New("stored state cannot be used")     // Load
	ErrStore        = errors.New("store failed")                    // nothing was sent or accepted
)

// A refusal joins what something was refused for with where and why.
type refusal struct {
	kind   error
	reason string
	cause  error // nil when the kind says it all
}

func (r *refusal) Error() string {
	if r.cause != nil {
		return r.kind.Error() + ": " + r.reason + ": " + r.cause.Error()
	}
	return r.kind.Error() + ": " + r.reason
}

// Unwrap gives errors.Is both the kind and the cause.
func (r *refusal) Unwrap() []error {
	if r.cause != nil {
		return []error{r.kind, r.cause}
	}
	return []error{r.kind}
}

func refuse(kind error, format string, args ...any) error {
	return &refusal{kind: kind, reason: fmt.Sprintf(format, args...)}
}

func refuseFor(kind, cause error, format string, args ...any) error {
	return &refusal{kind: kind, reason: fmt.Sprintf(format, args...), cause: cause}
}
