package operator

import (
	"context"
	"errors"
	"time"
)

// process commits a batch whatever it takes: it retries what is transient, parks what is not, and leaves out
// partitions that were lost meanwhile. It returns false when it was given up because ctx ended.
func (l *loop) process(ctx context.Context, b batch) bool {
	wait := backoff{}
	l.began(b)
	l.hand = hand{since: time.Now()}
	for {
		b = b.live()
		if len(b) == 0 {
			l.settle(false)
			return true
		}
		b.blocks()
		err := l.attempt(ctx, b, nil)
		if errors.Is(err, errKilled) {
			l.killed = true
			return false
		}
		if err == nil {
			l.committed(ctx, b)
			return !l.kill(afterMark)
		}
		switch l.resolve(ctx, b, err) {
		case outcomeCommitted:
			l.committed(ctx, b)
			return true
		case outcomeFenced:
			continue
		case outcomeUnknown: // the stop did not leave the time to find out
			return false
		case outcomeRolledBack:
		}
		l.settle(false)
		class := classify(err)
		if class == deterministic || class == tooLong && b.handed() > 1 {
			return l.narrow(ctx, b, err)
		}
		l.op.metrics.retries.Inc()
		l.op.log.WarnContext(b.about(ctx), "a batch is tried again", "records", b.size(), "error", err)
		if !wait.sleep(ctx) {
			return false
		}
	}
}

// narrow halves a batch into transactions of their own, each with its checkpoint, down to the record that cannot
// be applied; that one is parked. No savepoints: they would keep the store lock.
func (l *loop) narrow(ctx context.Context, b batch, err error) bool {
	if b.handed() <= 1 {
		if b.count(applied) == 0 {
			l.op.log.ErrorContext(ctx, "what follows from the time alone could not be done", "error", err)
		}
		b.reject(err)
		return l.process(ctx, b)
	}
	first, second := b.halve()
	return l.process(ctx, first) && l.process(ctx, second)
}

// kill ends the loop at a point of a test.
func (l *loop) kill(at point) bool {
	if err := l.op.hooks.at(at, l.op.def.Name); errors.Is(err, errKilled) {
		l.killed = true
	}
	return l.killed
}
