package operator

import (
	"context"
	"errors"
	"time"

	"github.com/feira-shop/feira/shared/eventstore"
)

// replay applies parked records as an ordinary fenced batch that moves no offset. Records that cannot be applied
// stay parked with their new error, and those of their keys behind them. False means: not now.
func (s *errand) replay(ctx context.Context, items []*item) bool {
	fit := make([]*item, 0, len(items))
	for _, it := range items {
		switch {
		case it.order != "" && s.failed[it.order]:
		case it.fate == parking:
			if !s.keep(ctx, it) {
				return false
			}
		default:
			fit = append(fit, it)
		}
	}
	if len(fit) == 0 {
		return true
	}
	err := s.commit(ctx, change{apply: true, gone: fit})
	switch {
	case err == nil:
		return true
	case classify(err) != deterministic:
		return false
	case len(fit) == 1:
		fit[0].park(reasonRejected, err.Error())
		return s.keep(ctx, fit[0])
	}
	half := len(fit) / 2
	return s.replay(ctx, fit[:half]) && s.replay(ctx, fit[half:])
}

// keep leaves a record parked and notes why.
func (s *errand) keep(ctx context.Context, it *item) bool {
	if it.order != "" {
		s.failed[it.order] = true
	}
	return s.commit(ctx, change{kept: it}) == nil
}

// change is what one transaction does to parked records.
type change struct {
	gone  []*item // these are taken out,
	apply bool    // applied or not
	kept  *item   // this one failed again
}

// errNotNow says that a change was given up for now: the claim is lost, or the operator stops.
var errNotNow = errors.New("operator: parked records could not be changed now")

// commit makes a change under the claim's checkpoint, which stays where it is. What is transient is tried again
// while the claim lives; the error is deterministic or [errNotNow].
func (s *errand) commit(ctx context.Context, ch change) error {
	wait := backoff{}
	s.hand = hand{since: time.Now()}
	for !s.claim.dead() {
		p := &part{claim: s.claim, to: s.claim.saved}
		if ch.apply {
			for _, it := range ch.gone {
				p.steps = append(p.steps, step{item: it, fate: it.fate, to: p.to})
			}
		}
		err := s.attempt(ctx, batch{p}, func(tx *eventstore.Tx) { s.write(tx, ch) })
		if err != nil {
			err = s.outcomeOf(ctx, batch{p}, ch, err)
		}
		switch {
		case err == nil:
			s.changed(ctx, p, ch)
			return nil
		case errors.Is(err, errNotNow):
			return err
		case classify(err) == deterministic:
			return err
		}
		s.op.metrics.retries.Inc()
		s.op.log.WarnContext(batch{p}.about(ctx), "a change of parked records is tried again", "error", err)
		if !wait.sleep(ctx) {
			break
		}
	}
	return errNotNow
}

// outcomeOf finds out what became of a failed attempt: nil when it was committed after all, [errNotNow] when the
// claim cannot go on, else the error that rolled it back.
func (s *errand) outcomeOf(ctx context.Context, b batch, ch change, err error) error {
	if errors.Is(err, errKilled) {
		s.killed = true
		return errNotNow
	}
	if s.resolve(ctx, b, err) != outcomeRolledBack {
		s.settle(false)
		return errNotNow
	}
	if errors.Is(err, eventstore.ErrUnknown) && len(ch.gone) > 0 {
		// The checkpoint did not move, so it cannot tell; but since the attempt is barred, the parked rows can.
		done, unread := s.isGone(ctx, ch.gone)
		if done {
			return nil
		}
		if unread != nil { // memory may be behind the database: begin anew from there
			s.claim.end()
			s.settle(false)
			return errNotNow
		}
	}
	s.settle(false)
	return err
}

// changed follows a commit in memory.
func (s *errand) changed(ctx context.Context, p *part, ch change) {
	s.settle(true)
	s.recordSpans(batch{p})
	if ch.kept != nil {
		s.op.logParked(ctx, ch.kept)
	}
	for _, it := range ch.gone {
		s.claim.resolvedOne(it.order)
	}
	s.op.metrics.passed(p)
	if len(p.steps) > 0 {
		s.op.store.Committed()
	}
}

// isGone asks whether an attempt with an unknown outcome took the rows out.
func (s *errand) isGone(ctx context.Context, items []*item) (bool, error) {
	ctx, cancel := s.attemptContext(ctx)
	defer cancel()
	var left int
	err := s.op.pool.QueryRow(ctx, `select count(*) from parked
		where operator = $1 and topic = $2 and partition = $3 and "offset" = any($4)`,
		s.op.def.Name, s.claim.topic, s.claim.partition, offsetsOf(items)).Scan(&left)
	return err == nil && left == 0, err
}
