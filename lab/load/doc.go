// Package load holds the executors that call a target and time its calls: Interleave (shuffled blocks over several
// contenders), Count (one VU, a fixed number of calls, inline) and Closed (VUs that wait for replies). It knows no
// protocol, starts no process and derives no statistic.
package load
