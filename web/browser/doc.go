// Package browser drives a real browser over toll's pages. It is a module of its own, so that the main one needs no browser's
// protocol; its tests run toll as a program.
package browser
