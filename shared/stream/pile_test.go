package stream

import (
	"slices"
	"testing"
)

func (p *pile) all() []place {
	if p == nil {
		return nil
	}
	return slices.Concat(p.chunks...)
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
		for i := range place(5000) {
			if at, more := p.pop(); !more || at != 4999-i {
				t.Fatalf("round %d: %d, %v, want %d", round, at, more, 4999-i)
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
