package operator

import (
	"context"
	"errors"

	"github.com/feira-shop/feira/shared/eventstore"
)

// replay applies parked records as an ordinary fenced batch that moves no offset. Records that cannot be applied
// stay parked with their new error, and those of their keys behind them. False means: not now.
func (s *errand) replay(ctx context.Context, items []*item) bool {
	fit := make([]*item, 0, len(items))
	for _, it := range items {
		key := string(it.raw.key)
		switch {
		case len(key) > 0 && s.failed[key]:
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
	err := s.try(ctx, fit)
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

// try is one replay until it is committed or refused: the error is the deterministic one, or any other when it
// was given up.
func (s *errand) try(ctx context.Context, items []*item) error {
	steps := make([]step, 0, len(items))
	for _, it := range items {
		steps = append(steps, step{item: it, fate: it.fate, to: s.claim.saved})
	}
	var rejected error
	ok := s.writeSteps(ctx, items, steps, func(tx *eventstore.Tx) error {
		s.resolved(tx, items)
		return nil
	}, &rejected)
	if ok {
		for _, it := range items {
			s.claim.resolvedOne(it.raw.key)
		}
		return nil
	}
	if rejected == nil {
		rejected = errNotNow
	}
	return rejected
}

var errNotNow = errors.New("operator: the replay was given up for now")

// keep leaves a record parked and notes why.
func (s *errand) keep(ctx context.Context, it *item) bool {
	if len(it.raw.key) > 0 {
		s.failed[string(it.raw.key)] = true
	}
	return s.writeSteps(ctx, nil, nil, func(tx *eventstore.Tx) error {
		s.failedAgain(tx, it)
		return nil
	}, nil)
}

// write takes records out of the parked ones without applying them.
func (s *errand) write(ctx context.Context, items []*item, rejected *error) bool {
	ok := s.writeSteps(ctx, items, nil, func(tx *eventstore.Tx) error {
		s.resolved(tx, items)
		return nil
	}, rejected)
	if ok {
		for _, it := range items {
			s.claim.resolvedOne(it.raw.key)
		}
	}
	return ok
}

// writeSteps commits steps, and what also adds, under the claim's checkpoint, which stays where it is. A
// deterministic error goes to rejected; anything transient is tried again while the claim lives.
func (s *errand) writeSteps(ctx context.Context, gone []*item, steps []step, also func(*eventstore.Tx) error, rejected *error) bool {
	wait := backoff{}
	for !s.claim.dead() {
		b := batch{{claim: s.claim, steps: steps, to: s.claim.saved}}
		err := s.attempt(ctx, b, also)
		if err == nil {
			s.settle(true)
			if b.count(applied) > 0 {
				s.op.store.Committed()
			}
			s.op.metrics.passed(b[0])
			return true
		}
		if errors.Is(err, errKilled) {
			s.killed = true
			return false
		}
		switch s.resolve(ctx, b, err) {
		case outcomeFenced, outcomeUnknown, outcomeCommitted:
			s.settle(false)
			return false
		case outcomeRolledBack:
		}
		if errors.Is(err, eventstore.ErrUnknown) && len(gone) > 0 {
			// The checkpoint did not move, so it cannot tell; but since it was barred, the parked rows can.
			if done, ok := s.resolvedAlready(ctx, gone); !ok || done {
				s.settle(done)
				return done
			}
		}
		s.settle(false)
		if rejected != nil && classify(err) == deterministic {
			*rejected = err
			return false
		}
		s.op.metrics.retries.Inc()
		s.op.log.Warn("a replay is tried again", "error", err)
		if !wait.sleep(ctx) {
			return false
		}
	}
	return false
}

// resolvedAlready asks whether an attempt with an unknown outcome took the rows out.
func (s *errand) resolvedAlready(ctx context.Context, items []*item) (done, ok bool) {
	ctx, cancel := s.attemptContext(ctx)
	defer cancel()
	var left int
	err := s.op.store.Pool().QueryRow(ctx, `select count(*) from parked
		where operator = $1 and topic = $2 and partition = $3 and "offset" = any($4)`,
		s.op.def.Name, s.claim.topic, s.claim.partition, offsetsOf(items)).Scan(&left)
	return left == 0, err == nil
}
