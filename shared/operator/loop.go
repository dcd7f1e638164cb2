package operator

import (
	"context"
	"time"
)

// loop takes batches from the claims and commits them, one at a time. Everything that a claim keeps for the loop
// is touched by its goroutine only.
type loop struct {
	*run
	lazySince time.Time       // since when a checkpoint waits that only passes over records; zero: none does
	unsettled bool            // the handler waits for the outcome of its last Apply
	killed    bool            // a test took the process away
	limit     context.Context //nolint:containedctx // that of the transactions, see outlive
	closer    closer
	hand      hand
	spans     *spans // of the last attempt; nil: none
}

func newLoop(r *run) *loop { return &loop{run: r} }

// work runs until ctx ends. A transaction in hand then has a little time left.
func (l *loop) work(ctx context.Context) {
	defer l.outlive(ctx)()
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	defer l.releaseAll()
	for ctx.Err() == nil && !l.killed {
		for ctx.Err() == nil && !l.killed && l.round(ctx) {
		}
		timer.Reset(l.sleepFor())
		select {
		case <-l.wake:
		case <-timer.C:
		case <-ctx.Done():
		}
	}
	if !l.killed {
		l.flush(ctx)
	}
}

// sleepFor is when the loop must look again without being woken.
func (l *loop) sleepFor() time.Duration {
	next := time.Hour
	if !l.lazySince.IsZero() {
		next = time.Until(l.lazySince.Add(l.op.timing.lazy))
	}
	for _, c := range l.claims.sorted() {
		if !c.restored {
			next = min(next, time.Until(c.retryAt))
		}
	}
	if l.closerClaim() != nil {
		next = min(next, time.Until(l.closer.again))
	}
	return max(next, time.Millisecond)
}

// round does what there is to do once; false when there was nothing.
func (l *loop) round(ctx context.Context) bool {
	l.exchange(ctx)
	if !l.lazySince.IsZero() && time.Since(l.lazySince) >= l.op.timing.lazy {
		l.flush(ctx)
	}
	if l.control.paused() {
		return false
	}
	if l.control.takeRequests() {
		l.flush(ctx) // what is replayed comes after all that was passed over
		if !l.serveRequests(ctx) {
			return false // what is to be filled in comes before the records behind the hole; the control looks again soon
		}
	}
	worked := l.close(ctx)
	l.tick(ctx)
	if l.killed {
		return false
	}
	b, g := take(l.takeable(), l.op.maxBatch())
	if len(b) == 0 {
		return worked
	}
	b.blocks()
	if g != nil {
		// What came before the hole is committed; that also proves that the partition is still ours to judge.
		if !l.process(ctx, b) {
			return false
		}
		if g.claim.dead() {
			return true
		}
		l.fail(g.error(l.op.def.Name))
		return false
	}
	if b.idle() {
		l.pass(b)
		return true
	}
	return l.process(ctx, b)
}

// exchange releases the state of lost claims and restores that of new ones.
func (l *loop) exchange(ctx context.Context) {
	s := l.op.stateful
	lost, alive := l.claims.handOver()
	for _, c := range lost {
		if s != nil && c.restored {
			s.Release(c.owned)
		}
	}
	if s == nil {
		return
	}
	for _, c := range alive {
		if c.restored || time.Now().Before(c.retryAt) {
			continue
		}
		rctx, cancel := l.attemptContext(ctx)
		err := s.Restore(rctx, l.op.pool, c.owned)
		cancel()
		if err != nil {
			l.op.log.Warn("state could not be restored yet", "topic", c.topic, "partition", c.partition, "error", err)
			c.retryAt = time.Now().Add(mostWait)
			continue
		}
		c.restored = true
	}
}

// releaseAll forgets the handler's state when the run ends.
func (l *loop) releaseAll() {
	l.settle(false)
	for _, t := range l.op.def.Topics {
		l.claims.drop(t.Name)
	}
	lost, _ := l.claims.handOver()
	for _, c := range lost {
		if l.op.stateful != nil && c.restored {
			l.op.stateful.Release(c.owned)
		}
	}
}

// pass moves over records without effect, in memory only: their checkpoint goes with the next batch, or is
// written after a while.
func (l *loop) pass(b batch) {
	for _, p := range b {
		p.claim.at, p.claim.clock = p.to, p.told()
		l.op.metrics.passed(p)
	}
	l.ended(b)
	if l.lazySince.IsZero() {
		l.lazySince = time.Now()
	}
}

// flush writes the checkpoints that wait.
func (l *loop) flush(ctx context.Context) {
	l.lazySince = time.Time{}
	var b batch
	for _, c := range l.claims.sorted() {
		if c.at != c.saved {
			b = append(b, c.part())
		}
	}
	if len(b) > 0 {
		l.process(ctx, b)
	}
}

// began and ended tell the metrics how old the records in hand are. A part without records has no age.
func (l *loop) began(b batch) {
	for _, p := range b {
		if at := p.oldest(); !at.IsZero() {
			p.claim.inHand.Store(at.UnixNano())
		}
	}
}

func (l *loop) ended(b batch) {
	for _, p := range b {
		p.claim.inHand.Store(0)
	}
}
