// Package result is the document toll.result/v1: what was measured, of what, how, on which machine, and how far it can be
// trusted. It reads, writes and merges documents and derives the compared figures (ratios, ranks) from the blocks a
// document holds, so that a reader can derive them again. It measures nothing and renders nothing.
package result
