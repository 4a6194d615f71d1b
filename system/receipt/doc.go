// Package receipt gives every arriving request a signed receipt that anyone can verify offline. A receipt binds a request's
// id and hash to tenant, namespace and policy, to a place in one sequence and to the time of arrival; it holds no plaintext,
// because its schema is closed. It is signed by itself (form single: Ed25519 over the RFC 8785 form) or through an RFC 6962
// inclusion proof in a signed C2SP checkpoint (form batch); one verifier reads both and takes keys from a pinned set only.
//
// What was acknowledged is on disk: an envelope is frozen and, with durability fsync, synced before anyone hears of it, so
// that signing it again after a crash gives the same bytes. The package does no routing of requests and keeps no payloads.
package receipt
