package operator

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// mostResults bounds the transaction of a closing: the store is locked meanwhile.
const mostResults = 1000

// closer is what the loop remembers of its closings.
type closer struct {
	again time.Time // when to look even though the handler sees no reason
	most  int       // results of one closing; less after one that took too long or was refused
	wait  backoff
}

// close closes what can be closed, one transaction at a time, if the partition is ours that decides who does it. It says
// whether it did anything.
func (l *loop) close(ctx context.Context) bool {
	c := l.closerClaim()
	if c == nil || !l.due() {
		return false
	}
	began := time.Now()
	n, err := l.closeOnce(ctx, c)
	switch {
	case errors.Is(err, errKilled):
		l.killed = true
	case err != nil:
		l.op.closingFailed(err)
		l.op.log.Warn("windows could not be closed yet", "error", err)
		l.closer.again = time.Now().Add(l.closer.wait.next())
	case n == 0:
		l.closer.again, l.closer.wait = time.Now().Add(l.op.timing.closing), backoff{}
	default:
		l.op.closingFailed(nil)
		l.op.metrics.closings.Observe(time.Since(began).Seconds())
		l.closer.most, l.closer.wait = min(2*l.closer.most, mostResults), backoff{}
	}
	return err == nil && n > 0
}

// closerClaim is the claim whose owner closes windows, if it is ours and ready.
func (l *loop) closerClaim() *claim {
	if l.op.closing == nil {
		return nil
	}
	c := l.claims.get(place{l.op.def.Topics[0].Name, 0})
	if c == nil || c.dead() || !c.restored {
		return nil
	}
	return c
}

// due says whether to look: after a failure not before its time, else when the handler sees a reason or a second is over.
func (l *loop) due() bool {
	return !l.closer.wait.failed() && l.op.closing.Ripe() || !time.Now().Before(l.closer.again)
}

// closeOnce is one closing, fenced by the checkpoint of the claim, which it does not move.
func (l *loop) closeOnce(ctx context.Context, c *claim) (int, error) {
	if l.closer.most == 0 {
		l.closer.most = mostResults
	}
	n, err := l.lookAndClose(ctx, c)
	if n == 0 {
		return 0, err
	}
	if err == nil {
		l.op.closing.Closed(true)
		l.op.store.Committed()
		return n, nil
	}
	l.op.closing.Closed(false)
	if errors.Is(err, errKilled) {
		return n, err
	}
	if l.resolve(ctx, batch{still(c)}, err) == outcomeRolledBack && classify(err) != transient && n > 1 {
		l.closer.most = max(1, n/2) // down to the one that cannot be said, so that those before it are
	}
	return n, err
}

// still is a part that moves nothing. Whether such a transaction was committed cannot be read from the checkpoint; so
// one whose outcome is unknown is barred, and the next look finds what became of it.
func still(c *claim) *part { return &part{claim: c, to: c.saved} }

func (l *loop) lookAndClose(ctx context.Context, c *claim) (int, error) {
	ctx, cancel := l.attemptContext(ctx)
	defer cancel()
	n, err := l.op.closing.Look(ctx, l.op.pool, l.closer.most)
	if err != nil || n == 0 {
		return 0, err
	}
	if err := l.op.hooks.at(beforeClosing, l.op.def.Name); err != nil {
		return n, err
	}
	tx, err := l.op.store.BeginIn(ctx, l.op.pool)
	if err != nil {
		return n, err
	}
	defer tx.Rollback()
	if err := l.op.closing.Close(ctx, tx); err != nil {
		return n, err
	}
	if err := tx.Commit(ctx, "op_commit", batch{still(c)}.checkpoints(l.op.def.Name)...); err != nil {
		return n, err
	}
	return n, l.op.hooks.at(afterClosing, l.op.def.Name)
}

// closingFailed keeps what is wrong with closings for Health; nil: nothing is.
func (o *Operator) closingFailed(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.unclosed = nil
	if err != nil && classify(err) == deterministic {
		o.unclosed = fmt.Errorf("operator %s: a window cannot be closed, and those after it wait: %w", o.def.Name, err)
	}
}
