// Package stats is the mathematics of a comparison: quantiles with order-statistic intervals, the paired ratio with its
// exact Wilcoxon interval, ranks that admit ties, drift and carry-over. It is pure: the same numbers give the same answer,
// no clock is read and nothing is sampled but permutations of a fixed seed. It is opinionated: it knows no mean ± deviation,
// drops no outlier and gives no interval that its sample is too small for.
package stats
