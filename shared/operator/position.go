package operator

// position is how far an operator has come in one partition.
type position struct {
	next   int64 // offset of the next record to take
	source int64 // position, in the owner's store, of the last event applied
	adopt  bool  // the next event's predecessor is taken over instead of being checked
}

// fate is what becomes of a record.
type fate int

const (
	applied   fate = iota // handed to the handler
	filtered              // of a type that this operator does not want
	unknown               // of a type that nobody here knows: skipped and counted
	duplicate             // applied before: dropped and counted
	parking               // kept aside with a reason
)

// hole is a record whose predecessor was never applied.
type hole struct{ offset, have, need int64 }

// advance moves p over an item. It is the whole of deduplication and of the chain of positions: a record that
// was applied before is a duplicate, one whose predecessor was not applied shows a hole and moves nothing.
func (p position) advance(it item) (position, fate, *hole) {
	to := p
	to.next = it.rec.Offset + 1
	if !it.counted {
		return to, it.fate, nil
	}
	if it.chained {
		if it.rec.Sequence <= p.source {
			return to, duplicate, nil
		}
		if it.rec.Previous > p.source && !p.adopt {
			return p, it.fate, &hole{offset: it.rec.Offset, have: p.source, need: it.rec.Previous}
		}
		to.adopt = false
	}
	to.source = max(p.source, it.rec.Sequence)
	return to, it.fate, nil
}
