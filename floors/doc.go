// Package floors holds the tests of the repository itself: which package may import which, package comments, the words
// list, schemas that are the same in both places. It has no code of its own.
package floors
