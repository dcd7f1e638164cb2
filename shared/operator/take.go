package operator

// A batch is bounded by records (Definition.MaxBatch) and by the bytes of their values.
const (
	defaultMaxBatch = 500
	maxBatchBytes   = 16 << 20
	maxQueueBytes   = 8 << 20
	queueBatches    = 4 // batches that a claim may have read ahead
)

// gap is a hole with the claim that met it.
type gap struct {
	claim *claim
	hole
}

func (g *gap) error(operator string) *MissingEventsError {
	return &MissingEventsError{
		Operator: operator, Topic: g.claim.topic, Partition: g.claim.partition,
		Offset: g.offset, Have: g.have, Need: g.need,
	}
}

// take collects what has arrived from all claims, at most limit records: first a fair share of each, then what
// else there is. It stops at a record that shows a hole; what came before it is taken.
func take(claims []*claim, limit int) (batch, *gap) {
	if len(claims) == 0 {
		return nil, nil
	}
	share := max(1, limit/len(claims))
	parts := make(map[*claim]*part, len(claims))
	var b batch
	left, bytes := limit, 0
	for round := range 2 {
		for _, c := range claims {
			n := left
			if round == 0 {
				n = min(n, share)
			}
			if n <= 0 || bytes >= maxBatchBytes || c.dead() || !c.restored {
				continue
			}
			items := c.queue.take(n, maxBatchBytes-bytes)
			if len(items) == 0 {
				continue
			}
			p := parts[c]
			if p == nil {
				p = c.part()
				parts[c] = p
				b = append(b, p)
			}
			for _, it := range items {
				bytes += it.size
			}
			left -= len(items)
			if h := p.add(items); h != nil {
				return b, &gap{claim: c, hole: *h}
			}
		}
	}
	return b, nil
}

// add judges records by the position of their partition.
func (p *part) add(items []*item) *hole {
	for _, it := range items {
		if it.after != p.to.next {
			// Something between the broker and here lost a record. Reading again from the checkpoint cures it.
			p.claim.end()
			return nil
		}
		to, f, h := p.to.advance(*it)
		if h != nil {
			return h
		}
		p.to = to
		p.steps = append(p.steps, step{item: it, fate: f, to: to})
	}
	return nil
}
