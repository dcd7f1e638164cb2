package operator

import "time"

// step is one record of a batch with the position after it.
type step struct {
	*item
	fate fate
	to   position
}

// park has the record kept aside instead of what was meant for it.
func (s *step) park(reason, problem string) {
	s.fate = parking
	s.item.park(reason, problem) // not the step's own
}

// told is how far a record that is passed over says that time has come.
func (s *step) told() time.Time {
	if s.fate != filtered && s.fate != unknown {
		return time.Time{}
	}
	return s.clock
}

// hands says whether a step hands the handler something: a record, or how far time has come.
func (s *step) hands() bool { return s.fate == applied || !s.told().IsZero() }

// part is what a batch holds of one partition.
type part struct {
	claim *claim
	steps []step
	to    position
}

// batch is what one transaction carries, in the order of the partitions.
type batch []*part

// live leaves out the partitions that are not owned any more: their next owner reads their records again.
func (b batch) live() batch {
	kept := make(batch, 0, len(b))
	for _, p := range b {
		if !p.claim.dead() {
			kept = append(kept, p)
		}
	}
	return kept
}

// count says how many records have a fate.
func (b batch) count(f fate) int {
	n := 0
	for _, p := range b {
		for _, s := range p.steps {
			if s.fate == f {
				n++
			}
		}
	}
	return n
}

// handed counts the steps that hand the handler something.
func (b batch) handed() int {
	n := 0
	for _, p := range b {
		for i := range p.steps {
			if p.steps[i].hands() {
				n++
			}
		}
	}
	return n
}

// idle reports whether nothing needs to be written but the checkpoint.
func (b batch) idle() bool { return b.count(applied) == 0 && b.count(parking) == 0 }

// records are those for the handler. Where others say how far time has come, a tick does before the next of them: what
// the handler makes of a record depends neither on batches nor on when a checkpoint was written.
func (b batch) records() []Record {
	records := make([]Record, 0, b.size())
	for _, p := range b {
		var clock time.Time
		for i := range p.steps {
			s := &p.steps[i]
			clock = later(clock, s.told())
			if s.fate != applied {
				continue
			}
			if !clock.IsZero() {
				records = append(records, tick(s.rec.Topic, s.rec.Partition, s.rec.Offset, clock))
				clock = time.Time{}
			}
			records = append(records, s.rec)
		}
		if !clock.IsZero() {
			records = append(records, tick(p.claim.topic, p.claim.partition, p.to.next, clock))
		}
	}
	return records
}

func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

// told is how far all records of the part that are passed over say that time has come.
func (p *part) told() time.Time {
	var clock time.Time
	for i := range p.steps {
		clock = later(clock, p.steps[i].told())
	}
	return clock
}

func (b batch) size() int {
	n := 0
	for _, p := range b {
		n += len(p.steps)
	}
	return n
}

// blocks marks records of parked keys, so that they wait behind.
func (b batch) blocks() {
	for _, p := range b {
		p.block()
	}
}

func (p *part) block() {
	var here map[string]bool // parked by this batch
	for i := range p.steps {
		s := &p.steps[i]
		if s.order == "" {
			continue
		}
		switch {
		case s.fate == parking:
			if here == nil {
				here = map[string]bool{}
			}
			here[s.order] = true
		case s.fate == applied && (here[s.order] || p.claim.blocked[s.order] > 0):
			s.park(reasonWaiting, "an earlier record of its key is parked")
		}
	}
}

// halve splits a batch that hands the handler at least two things into two with about half of them each.
func (b batch) halve() (first, second batch) {
	left := b.handed() / 2
	for _, p := range b {
		n := batch{p}.handed()
		switch {
		case left == 0:
			second = append(second, p)
		case n <= left:
			first = append(first, p)
			left -= n
		default:
			head, tail := p.cut(left)
			first, second = append(first, head), append(second, tail)
			left = 0
		}
	}
	return first, second
}

// cut splits a part after the first n things that it hands the handler.
func (p *part) cut(n int) (head, tail *part) {
	i := 0
	for ; n > 0; i++ {
		if p.steps[i].hands() {
			n--
		}
	}
	return &part{claim: p.claim, steps: p.steps[:i], to: p.steps[i-1].to},
		&part{claim: p.claim, steps: p.steps[i:], to: p.to}
}

// reject parks the only record that is left for the handler. If it is none, but the time that another record told, then
// that is not told.
func (b batch) reject(err error) {
	for _, p := range b {
		for i := range p.steps {
			switch s := &p.steps[i]; {
			case s.fate == applied:
				s.park(reasonRejected, err.Error())
			case s.hands():
				s.clock = time.Time{}
			}
		}
	}
}

// oldest is the time of the first record, of which lag is measured.
func (p *part) oldest() time.Time {
	for i := range p.steps {
		if at := p.steps[i].raw.timestamp; !at.IsZero() {
			return at
		}
	}
	return time.Time{}
}

// checkpoints are the leading arguments of op_commit.
func (b batch) checkpoints(operator string) []any {
	n := len(b)
	topics, partitions := make([]string, n), make([]int32, n)
	epochs, from, to := make([]int64, n), make([]int64, n), make([]int64, n)
	sources, adopt := make([]int64, n), make([]bool, n)
	for i, p := range b {
		topics[i], partitions[i] = p.claim.topic, p.claim.partition
		epochs[i], from[i], to[i] = p.claim.epoch, p.claim.saved.next, p.to.next
		sources[i], adopt[i] = p.to.source, p.to.adopt
	}
	return []any{operator, topics, partitions, epochs, from, to, sources, adopt}
}
