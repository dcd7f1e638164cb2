package operator

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/feira-shop/feira/shared/eventstore"
)

// outlive gives the loop's transactions a context that ends a little after ctx: cancelling closes the connection, and
// a commit that is nearly done is worth waiting for. It is one for all, or each try after the stop would have that time.
func (l *loop) outlive(ctx context.Context) (end func()) {
	limit, giveUp := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		timer := time.AfterFunc(l.op.timing.giveUp, giveUp)
		context.AfterFunc(limit, func() { timer.Stop() })
	})
	l.limit = limit
	return func() {
		stop()
		giveUp()
	}
}

// attemptContext bounds a transaction. It does not end with ctx, but with what outlives it.
func (l *loop) attemptContext(ctx context.Context) (context.Context, context.CancelFunc) {
	actx, cancel := context.WithTimeout(context.WithoutCancel(ctx), l.op.timing.attempt)
	stop := context.AfterFunc(l.limit, cancel)
	return actx, func() {
		stop()
		cancel()
	}
}

// attempt applies a batch in one transaction: the handler, then one call with the commit in the same write. also
// may queue more for that write.
func (l *loop) attempt(ctx context.Context, b batch, also func(*eventstore.Tx)) error {
	ctx, cancel := l.attemptContext(ctx)
	defer cancel()
	l.spans = nil
	if err := l.op.hooks.at(beforeBegin, l.op.def.Name); err != nil {
		return err
	}
	begun := time.Now()
	tx, err := l.op.store.BeginIn(ctx, l.op.pool)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	records := b.records()
	l.hand.take(b.count(applied))
	l.spans = l.op.plan(records)
	if len(records) > 0 {
		l.unsettled = l.op.stateful != nil
		if err := l.apply(ctx, tx, records); err != nil {
			return err
		}
		l.spans.appending(tx)
	}
	if err := l.op.hooks.at(afterApply, l.op.def.Name); err != nil {
		return err
	}
	if err := b.queueParked(tx, l.op.def.Name); err != nil {
		return Reject(err)
	}
	if also != nil {
		also(tx)
	}
	if err := l.op.hooks.at(beforeCommit, l.op.def.Name); err != nil {
		return err
	}
	if err := tx.Commit(ctx, "op_commit", b.checkpoints(l.op.def.Name)...); err != nil {
		return err
	}
	l.op.metrics.wrote(b, time.Since(begun))
	return l.op.hooks.at(afterCommit, l.op.def.Name)
}

// apply calls the handler. A panic is an error of its, met again with the same records: they are parked, and the
// process, which runs other operators too, lives on.
func (l *loop) apply(ctx context.Context, tx *eventstore.Tx, records []Record) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = Reject(fmt.Errorf("the handler panicked: %v\n%s", r, debug.Stack()))
		}
	}()
	return l.op.handler.Apply(ctx, tx, records)
}

// committed records the outcome in memory, then tells the store's watchers and Kafka.
func (l *loop) committed(ctx context.Context, b batch) {
	l.settle(true)
	for _, p := range b {
		c := p.claim
		c.saved, c.at, c.clock = p.to, p.to, time.Time{}
		for _, s := range p.steps {
			if s.fate == parking {
				c.parkedOne(s.order)
				l.op.logParked(ctx, s.item)
			}
		}
		l.op.metrics.passed(p)
	}
	l.ended(b)
	l.recordSpans(b)
	if b.handed() > 0 {
		l.op.store.Committed()
	}
	for _, p := range b {
		p.claim.mark()
	}
}

// settle tells a stateful handler how its last Apply ended.
func (l *loop) settle(committed bool) {
	if l.unsettled {
		l.op.stateful.Settle(committed)
		l.unsettled = false
	}
}
