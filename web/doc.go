// Package web is the local page over a folder of results: a list, trends with their change points, each report, the comparison of
// two results, and benchmarks that run, live. It reads the folder and changes nothing in it but the note of what watching cost.
package web
