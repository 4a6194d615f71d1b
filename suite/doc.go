// Package suite holds the benchmarks, one file each: which contenders it starts, by which driver it calls them, what a
// case means. It is the only package below cli that sees both the measured and the measurer, and it joins them without
// letting either know.
package suite
