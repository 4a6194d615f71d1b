// Package fleet spreads one load over many machines and merges what they measured. It holds the rules: a coordinator's and a
// worker's state machine, which are told the time and what arrived and return what to do, and the merge of the workers'
// slices. They read no clock and open no connection; fleet/hub does, and [Simulate] drives them through virtual time.
package fleet
