package operator

import (
	"context"
	_ "embed"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
)

//go:embed queries/stop.sql
var stopSQL string

// Kinds of named stops, as the table has them.
const (
	kindHistoryLost   = "history_lost"
	kindTopicReplaced = "topic_replaced"
	kindMissingEvents = "missing_events"
)

// wholeTopic stands for all partitions in operator_stops.
const wholeTopic = int32(-1)

// earliest stands for the first record that is there, where an offset is kept.
const earliest = int64(-1)

// stop records why the operator stopped, so that its members stop with it and a person can see it.
func (o *Operator) stop(ctx context.Context, cause error) {
	o.setStopped(cause)
	var lost *HistoryLostError
	var replaced *TopicReplacedError
	var missing *MissingEventsError
	var args []any
	switch {
	case errors.As(cause, &lost):
		args = []any{lost.Topic, lost.Partition, kindHistoryLost, cause.Error(), lost.To, 0, 0}
	case errors.As(cause, &replaced):
		args = []any{replaced.Topic, replaced.Partition, kindTopicReplaced, cause.Error(), earliest, 0, 0}
	case errors.As(cause, &missing):
		args = []any{missing.Topic, missing.Partition, kindMissingEvents, cause.Error(), missing.Offset, missing.Have, missing.Need}
	default: // another member has recorded it
		return
	}
	o.log.Error("the operator stopped", "error", cause)
	args = append([]any{o.def.Name, o.opts.Member}, args...)
	o.persist(ctx, func(ctx context.Context) error {
		_, err := o.pool.Exec(ctx, stopSQL, args...)
		return err
	})
}

// awaitAcceptance returns when no reason to be stopped is left, or ctx ended.
func (o *Operator) awaitAcceptance(ctx context.Context) {
	for ctx.Err() == nil {
		var message string
		actx, cancel := context.WithTimeout(ctx, o.timing.attempt)
		err := o.pool.QueryRow(actx,
			"select message from operator_stops where operator = $1 order by stopped_at limit 1", o.def.Name).Scan(&message)
		cancel()
		if errors.Is(err, pgx.ErrNoRows) {
			o.log.Info("the operator goes on")
			o.setStopped(nil)
			return
		}
		if err == nil {
			o.setStopped(fmt.Errorf("%s", message))
		}
		sleep(ctx, o.timing.control)
	}
}

// forgetStops clears what earlier processes stopped for: a start looks for itself, and stops again if need be.
func (o *Operator) forgetStops(ctx context.Context) {
	o.persist(ctx, func(ctx context.Context) error {
		_, err := o.pool.Exec(ctx, "delete from operator_stops where operator = $1", o.def.Name)
		return err
	})
}

// persist tries until it succeeds or ctx ended.
func (o *Operator) persist(ctx context.Context, write func(context.Context) error) {
	wait := backoff{}
	for ctx.Err() == nil {
		actx, cancel := context.WithTimeout(ctx, o.timing.attempt)
		err := write(actx)
		cancel()
		if err == nil {
			return
		}
		o.log.Warn("the operator's state could not be written yet", "error", err)
		wait.sleep(ctx)
	}
}

func (o *Operator) setStopped(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.stopped = err
	o.metrics.setStopped(err != nil)
}
