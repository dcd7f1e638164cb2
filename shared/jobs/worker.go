package jobs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"
	"github.com/sony/gobreaker/v2"

	"github.com/feira-shop/feira/shared/decider"
	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/eventstore"
	"github.com/feira-shop/feira/shared/failpoint"
)

// outcomeTimeout bounds writing an outcome. It is not cut short by a stop: the side effect has happened, and
// writing it down now is cheaper than doing it again.
const outcomeTimeout = 10 * time.Second

// worker does the jobs of one kind.
type worker[A river.JobArgs, S any] struct {
	river.WorkerDefaults[A]
	kind   string
	spec   Spec[A, S]
	runner *runner
}

// Timeout leaves the bounds to Work, which knows what may be cut short; River's is only there to report a
// worker that does not come back.
func (w *worker[A, S]) Timeout(*river.Job[A]) time.Duration {
	return w.spec.Timeout + outcomeTimeout + settleTimeout
}

// Work does one attempt. It leaves nothing to River: the attempt is completed with the outcome, or given back.
func (w *worker[A, S]) Work(ctx context.Context, job *river.Job[A]) error {
	attempt := eventstore.Attempt{JobID: job.ID}
	if job.AttemptedAt != nil {
		attempt.AttemptedAt = *job.AttemptedAt
	}
	ctx, end := w.trace(ctx, job)
	failpoint.At("jobs.before-effect", w.kind)
	cmd, err := w.do(ctx, job.Args)
	if err == nil {
		failpoint.At("jobs.after-effect", w.kind)
		err = w.settle(ctx, job, cmd, attempt)
	}
	end(w.ended(ctx, job.JobRow, attempt, err), err)
	return settled{}
}

// ended does what is to be done after an attempt, and says how it ended.
func (w *worker[A, S]) ended(ctx context.Context, row *rivertype.JobRow, attempt eventstore.Attempt, err error) (outcome string) {
	switch {
	case err == nil:
		failpoint.At("jobs.after-outcome", w.kind)
		w.runner.metrics.completed(w.kind, row.Attempt)
		return outcomeCompleted
	case errors.Is(err, eventstore.ErrAttemptLost):
		outcome = outcomeLost
	case errors.Is(context.Cause(ctx), rivertype.ErrJobCancelledRemotely):
		outcome = outcomeCancelled // someone took the job away; River notes it
	default:
		return w.retry(ctx, row, attempt, err)
	}
	w.runner.metrics.ended(w.kind, outcome)
	return outcome
}

// do performs the side effect behind its breaker, bounded in time. A panic is an error like any other.
func (w *worker[A, S]) do(ctx context.Context, args A) (any, error) {
	ctx, cancel := context.WithTimeout(ctx, w.spec.Timeout)
	defer cancel()
	begun := time.Now()
	return w.runner.breakers.named(w.spec.Breaker).Execute(func() (cmd any, err error) {
		defer func() {
			if p := recover(); p != nil {
				err = &panicError{value: p, stack: debug.Stack()}
			}
			w.runner.metrics.did(w.kind, time.Since(begun))
			switch {
			case err == nil:
			case context.Cause(ctx) != nil && !errors.Is(context.Cause(ctx), context.DeadlineExceeded):
				err = &interruptedError{err: err}
			case w.spec.Reached != nil && w.spec.Reached(err):
				err = &reachedError{err: err}
			}
		}()
		return w.spec.Do(ctx, args)
	})
}

// settle turns the outcome into events and completes the attempt with them.
func (w *worker[A, S]) settle(ctx context.Context, job *river.Job[A], cmd any, attempt eventstore.Attempt) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &RefusedError{Kind: w.kind, Command: cmd, Err: &panicError{value: p, stack: debug.Stack()}}
		}
	}()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), outcomeTimeout)
	defer cancel()
	var m events.Meta
	if w.spec.Meta != nil {
		m = w.spec.Meta(job.Args)
	}
	if m.Causation == "" {
		m.Causation = fmt.Sprintf("job/%s/%d", w.kind, job.ID)
	}
	_, err = decider.Handle(ctx, w.runner.store, w.spec.Decider, w.spec.Stream(job.Args), cmd, m, decider.Completing(attempt))
	return err
}

// retry gives the attempt back to be done again, and says why.
func (w *worker[A, S]) retry(ctx context.Context, row *rivertype.JobRow, attempt eventstore.Attempt, err error) (outcome string) {
	log := w.runner.log.With("kind", w.kind, "job", row.ID, "attempt", row.Attempt, "err", err)
	var (
		refused     *RefusedError
		panicked    *panicError
		interrupted *interruptedError
		back        = giveBack{attempt: attempt, number: row.Attempt, counted: true, delay: waitAfter(row.Attempt), err: err}
	)
	outcome = outcomeRetried
	switch {
	case errors.Is(err, gobreaker.ErrOpenState), errors.Is(err, gobreaker.ErrTooManyRequests):
		outcome = outcomeSnoozed
		back.counted, back.err, back.delay = false, nil, whileOpen()
	case errors.As(err, &interrupted):
		outcome = outcomeInterrupted
		back.counted, back.err, back.delay = false, nil, 0
	case errors.As(err, &refused):
		outcome = outcomeRefused
		log.ErrorContext(ctx, "jobs: the outcome of a job was refused; it is kept and tried again")
	case errors.As(err, &panicked):
		outcome = outcomePanicked
		log.ErrorContext(ctx, "jobs: a job panicked; it is kept and tried again", "stack", string(panicked.stack))
	default:
		log.Log(ctx, retryLevel(row.Attempt), "jobs: no answer; trying again", "in", back.delay)
	}
	w.runner.metrics.ended(w.kind, outcome)
	w.runner.giveBack(ctx, back)
	return outcome
}

// noticeableAttempt is the attempt from which on a person should see that a job gets no answer.
const noticeableAttempt = 5

func retryLevel(attempt int) slog.Level {
	if attempt < noticeableAttempt {
		return slog.LevelInfo
	}
	return slog.LevelWarn
}
