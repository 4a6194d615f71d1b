package receipt

import (
	"fmt"
	"strings"
	"testing"
)

// TestTexts holds the table against what its words say: the last half of what it may remember is always there, nothing that was
// never put is found, and what is found is what was put.
func TestTexts(t *testing.T) {
	for _, most := range []int{1, 2, 3, 16, 100} {
		texts := newTexts(most)
		text := func(i int) string { return strings.Repeat(fmt.Sprint("envelope ", i, " "), 1+i%90) }
		for i := range 5*most + 3000 {
			k := texts.keyOf("tenant", fmt.Sprint(i))
			if b, ok := texts.find(k); ok {
				t.Fatalf("most %d: request %d is remembered before it was put: %s", most, i, b)
			}
			texts.put(k, []byte(text(i)))
			for j := max(0, i-2*most); j <= i; j++ {
				b, ok := texts.find(texts.keyOf("tenant", fmt.Sprint(j)))
				if ok && string(b) != text(j) {
					t.Fatalf("most %d: request %d is remembered as %s", most, j, b)
				}
				if !ok && j > i-max(most/2, 1) {
					t.Fatalf("most %d: request %d is forgotten after %d more", most, j, i-j)
				}
				if ok && j <= i-2*max(most/2, 1) {
					t.Fatalf("most %d: request %d is remembered after %d more", most, j, i-j)
				}
			}
		}
	}
}

// TestIsPrintable tries every byte at every place of a word and behind it.
func TestIsPrintable(t *testing.T) {
	for at := range 19 {
		for c := range 256 {
			b := []byte("a name of 19 bytes.")
			b[at] = byte(c)
			if got, want := isPrintable(string(b)), c >= ' ' && c <= '~'; got != want {
				t.Errorf("byte %#x at %d: %v, want %v", c, at, got, want)
			}
		}
	}
}
