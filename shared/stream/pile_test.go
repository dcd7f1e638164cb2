package stream

import (
	"slices"
	"testing"
)

func (p *pile) has(at place) bool {
	return p != nil && slices.ContainsFunc(p.chunks, func(chunk []place) bool { return slices.Contains(chunk, at) })
}

func TestAPileGivesBackWhatItWasGiven(t *testing.T) {
	t.Parallel()
	var p pile
	if _, more := p.pop(); more {
		t.Error("an empty pile has a place")
	}
	for round := range 2 {
		for i := range 5000 {
			p.push(place(i))
		}
		for i := place(4999); i < 5000; i-- {
			if at, more := p.pop(); !more || at != i {
				t.Fatalf("round %d: %d, %v, want %d", round, at, more, i)
			}
		}
		if _, more := p.pop(); more || len(p.chunks) != 0 {
			t.Fatalf("round %d: %d chunks are left", round, len(p.chunks))
		}
	}
	p.push(1)
	if n := cap(p.chunks[0]); n != firstChunk {
		t.Errorf("a small pile has room for %d", n)
	}
}
