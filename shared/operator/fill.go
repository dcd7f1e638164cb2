package operator

import (
	"context"
	_ "embed"

	"github.com/jackc/pgx/v5"
)

//go:embed queries/fills.sql
var fillsSQL string

// filledIn is added to the position of an event that was filled in, for want of an offset. Such events come before
// all records, in the order of their positions.
const filledIn = -(int64(1) << 62)

// fill applies the events that are missing before the next record, as fenced batches that move the source
// position and no offset. What was applied meanwhile is a duplicate; what is still missing stops the operator
// again when it meets the next record.
func (s *errand) fill(ctx context.Context) bool {
	for {
		items, err := s.nextFills(ctx)
		if err != nil {
			s.op.log.Warn("events to fill in could not be read", "error", err)
			return false
		}
		p := &part{claim: s.claim, to: s.claim.at}
		for _, it := range items {
			to, f, h := p.to.advance(*it)
			if h != nil {
				break
			}
			to.next = s.claim.at.next
			p.to = to
			p.steps = append(p.steps, step{item: it, fate: f, to: to})
		}
		if len(p.steps) == 0 {
			return s.finish(ctx)
		}
		b := batch{p}
		b.blocks()
		if !s.process(ctx, b) || s.claim.dead() {
			return false
		}
	}
}

func (s *errand) nextFills(ctx context.Context) ([]*item, error) {
	ctx, cancel := s.attemptContext(ctx)
	defer cancel()
	rows, err := s.op.pool.Query(ctx, fillsSQL, s.op.def.Name, s.claim.topic, s.claim.partition, s.claim.at.source, s.op.maxBatch())
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (*item, error) {
		var sequence int64
		it, err := s.record(row, &sequence)
		if err == nil {
			it.rec.Offset = filledIn + sequence
		}
		return it, err
	})
}
