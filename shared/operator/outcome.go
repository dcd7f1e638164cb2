package operator

import (
	"context"
	_ "embed"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/feira-shop/feira/shared/eventstore"
)

// outcome is what became of a transaction that ended with an error.
type outcome int

const (
	outcomeUnknown outcome = iota
	outcomeRolledBack
	outcomeCommitted
	outcomeFenced // rolled back, and some of its claims belong to somebody else
)

var (
	//go:embed queries/look.sql
	lookSQL string
	//go:embed queries/bar.sql
	barSQL string
)

// resolve finds out what became of a failed transaction before anybody looks at the error: a frozen owner that
// wakes meets its successor's rows first, as a unique violation or a refused command, and must not park for it.
// It asks for as long as it takes, or until ctx ended and the time left is used up.
func (l *loop) resolve(ctx context.Context, b batch, cause error) outcome {
	wait := backoff{}
	for {
		actx, cancel := l.attemptContext(ctx)
		result, err := l.look(actx, b, errors.Is(cause, eventstore.ErrUnknown))
		cancel()
		if err == nil {
			return result
		}
		l.op.log.Warn("the outcome of a batch is not known yet", "error", err)
		if !wait.sleep(ctx) {
			return outcomeUnknown
		}
		if len(b.live()) == 0 {
			return outcomeFenced // whatever it was, the next owner knows
		}
	}
}

// row is a checkpoint as it is now.
type row struct {
	Topic     string
	Partition int32
	Next      int64
	Source    int64
	Epoch     int64
	Barred    bool
}

// look reads the checkpoints of a batch. When the outcome is unknown, reading alone would not do, because the
// commit may come later: the epochs of checkpoints that are still as before are raised, and the lost attempt can
// never succeed.
func (l *loop) look(ctx context.Context, b batch, bar bool) (outcome, error) {
	args := b.checkpoints(l.op.def.Name)
	sql := lookSQL
	if bar {
		sql = barSQL
	}
	sources := make([]int64, len(b))
	for i, p := range b {
		sources[i] = p.claim.saved.source
	}
	found, err := l.op.pool.Query(ctx, sql, args[0], args[1], args[2], args[3], args[4], sources)
	if err != nil {
		return outcomeUnknown, err
	}
	rows, err := pgx.CollectRows(found, pgx.RowToStructByPos[row])
	if err != nil {
		return outcomeUnknown, err
	}
	now := make(map[place]row, len(rows))
	for _, r := range rows {
		now[place{r.Topic, r.Partition}] = r
	}
	return l.judge(b, now)
}

// judge compares the rows with what the batch expects. All rows of a transaction moved, or none.
func (l *loop) judge(b batch, now map[place]row) (outcome, error) {
	result := outcomeRolledBack
	for _, p := range b {
		r, ok := now[p.claim.place]
		switch {
		case !ok:
			return outcomeUnknown, fmt.Errorf("the checkpoint of %s/%d is gone", p.claim.topic, p.claim.partition)
		case r.Barred:
			p.claim.epoch = r.Epoch
		case r.Epoch != p.claim.epoch:
			l.fenced(p.claim, r)
			result = outcomeFenced
		case r.Next == p.claim.saved.next && r.Source == p.claim.saved.source:
		case r.Next >= p.to.next && r.Source >= p.to.source:
			return outcomeCommitted, nil
		default:
			l.fenced(p.claim, r)
			result = outcomeFenced
		}
	}
	if result == outcomeFenced {
		l.settle(false)
	}
	return result, nil
}

// fenced ends the session of a claim that belongs to somebody else. Without that nobody would read its records
// again: the session here believes that it has delivered them.
func (l *loop) fenced(c *claim, now row) {
	l.op.metrics.fenced.Inc()
	l.op.log.Warn("a commit was refused: the partition has another owner", "topic", c.topic,
		"partition", c.partition, "epoch", c.epoch, "now", now.Epoch)
	c.end()
}
