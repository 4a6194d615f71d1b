// Package plan says what to measure: it parses and checks a plan file, and holds the pure parts of a schedule. It runs
// nothing, opens nothing and reads no clock.
package plan
