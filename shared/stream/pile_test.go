package stream

import (
	"slices"
	"strconv"
	"testing"
)

func (p *pile) has(key string) bool {
	return p != nil && slices.ContainsFunc(p.chunks, func(chunk []string) bool { return slices.Contains(chunk, key) })
}

func TestAPileGivesBackWhatItWasGiven(t *testing.T) {
	t.Parallel()
	var p pile
	if _, more := p.pop(); more {
		t.Error("an empty pile has a key")
	}
	for round := range 2 {
		for i := range 5000 {
			p.push(strconv.Itoa(i))
		}
		for i := 4999; i >= 0; i-- {
			if key, more := p.pop(); !more || key != strconv.Itoa(i) {
				t.Fatalf("round %d: %q, %v, want %d", round, key, more, i)
			}
		}
		if _, more := p.pop(); more || len(p.chunks) != 0 {
			t.Fatalf("round %d: %d chunks are left", round, len(p.chunks))
		}
	}
	p.push("a")
	if n := cap(p.chunks[0]); n != firstChunk {
		t.Errorf("a small pile has room for %d", n)
	}
}
