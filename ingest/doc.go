// Package ingest reads what other harnesses print: load generators, micro-benchmark libraries and two published benchmarks.
// It turns their figures into rows without judging, averaging or dividing them; units become microseconds and per second,
// and a figure that was not printed is absent, never zero. Every text is bounded, and its digest goes with its rows.
package ingest
