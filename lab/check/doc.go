// Package check holds the self-checks of a result document: its schema, its identifiers and each of the sixteen rules of an
// honest number. The checks are pure, use only what the document says, and derive again whatever can be derived, so that a
// document that was edited by hand is found out. They judge the measurement, never the contenders.
package check
