package stream

// Chunks of a pile are so long at first and at most.
const (
	firstChunk = 16
	mostChunk  = 1024
)

// pile is a stack of places. It grows by chunks and is never copied: of a million keys that are due in one second, the loop
// would wait for the copying.
type pile struct{ chunks [][]place }

func (p *pile) push(at place) {
	n := len(p.chunks)
	if n == 0 || len(p.chunks[n-1]) == cap(p.chunks[n-1]) {
		size := firstChunk
		if n > 0 {
			size = min(2*cap(p.chunks[n-1]), mostChunk)
		}
		p.chunks = append(p.chunks, make([]place, 0, size))
		n++
	}
	p.chunks[n-1] = append(p.chunks[n-1], at)
}

// pop takes the place that was pushed last; false: there is none.
func (p *pile) pop() (place, bool) {
	n := len(p.chunks)
	if n == 0 {
		return 0, false
	}
	last := p.chunks[n-1]
	at := last[len(last)-1]
	if last = last[:len(last)-1]; len(last) == 0 {
		p.chunks[n-1] = nil
		p.chunks = p.chunks[:n-1]
		return at, true
	}
	p.chunks[n-1] = last
	return at, true
}
