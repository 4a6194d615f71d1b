// Package report renders a result document for people and for other programs: a terminal table, Markdown, CSV. It shows
// what the document says and computes nothing that the document does not hold, but differences of two figures and their
// order.
package report
