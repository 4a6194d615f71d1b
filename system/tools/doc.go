// Package tools holds the tools of two published benchmarks of MCP servers, and what stands behind them: four tools that
// compute, fetch, transform and wait, and three of a shop with a catalogue and a Redis server. They are specified by what
// their authors' harness sends and checks; the code is ours. What serves them is not in here.
package tools
