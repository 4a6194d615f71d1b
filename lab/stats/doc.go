// Package stats is the mathematics of a comparison: quantiles with order-statistic intervals, the paired ratio with its
// exact Wilcoxon interval, ranks that admit ties, drift, carry-over and steadiness. It is pure: the same numbers give the
// same answer, no clock is read and nothing is sampled but permutations of a fixed seed. It is opinionated: it knows no
// mean ± deviation, drops no outlier and gives no interval that its sample is too small for.
//
// What it is given it does not tidy: a NaN gives NaN, never a number of the rest. Only the paired comparisons leave out a
// block, and say so. Slices that should be paired and are not, and levels that are none, are the caller's bug and panic.
package stats
