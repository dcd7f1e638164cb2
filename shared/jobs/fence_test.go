package jobs

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/feira-shop/feira/shared/decider"
	"github.com/feira-shop/feira/shared/faulttest"
)

// takeover has two attempts of one job running at once, as when the first's process was taken for dead: the
// zombie is the first. Each ends when the test says how.
type takeover struct {
	*bed
	attempts chan chan error
}

func newTakeover(t *testing.T) (b *takeover, zombie, heir chan error) {
	t.Helper()
	b = &takeover{bed: newBed(t), attempts: make(chan chan error, 10)}
	b.start(Work(spec(func(ctx context.Context, a chargeJob) (any, error) {
		end := make(chan error)
		b.attempts <- end
		select {
		case err := <-end:
			if err != nil {
				return nil, err
			}
			return receipt(ctx, a)
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	})))
	b.ask("1")
	zombie = receive(t, "the first attempt", b.attempts)
	execSQL(t, b.db.Pool, "update river_job set state = 'available' where state = 'running'") // as a sweeper does
	heir = receive(t, "the second attempt", b.attempts)
	return b, zombie, heir
}

// untouched waits until the zombie's attempt has ended, and sees that the heir's still runs.
func (b *takeover) untouched(outcome string, workersDone func() bool) {
	b.t.Helper()
	deadline := time.Now().Add(patience)
	for !workersDone() {
		if time.Now().After(deadline) {
			b.t.Fatalf("the zombie's attempt never ended as %s", outcome)
		}
		<-time.After(5 * time.Millisecond)
	}
	<-time.After(200 * time.Millisecond) // River would write its view of the attempt within 50 ms
	if !one[bool](b.t, b.db.Pool, "select state = 'running' and attempt = 2 from river_job") {
		b.t.Fatalf("the zombie changed the job: %s", b.jobs())
	}
	if r := b.receipts("1"); len(r) != 0 {
		b.t.Fatalf("the zombie's outcome was written: %v", r)
	}
}

func TestFaultLateOutcome(t *testing.T) {
	t.Parallel()
	faulttest.Begin(t, faulttest.Plan{
		Name: "Late outcome of a job", Does: "An attempt that was taken for dead ends after its job was given to another; its outcome is refused, the other's is written.",
	})
	b, zombie, heir := newTakeover(t)
	zombie <- nil
	b.untouched(outcomeLost, func() bool { return b.counted(outcomeLost) == 1 })
	heir <- nil
	b.settled()
	if r := b.receipts("1"); len(r) != 1 {
		t.Errorf("receipts %v", r)
	}
}

func TestLateFailureOfAZombieChangesNothing(t *testing.T) {
	t.Parallel()
	b, zombie, heir := newTakeover(t)
	zombie <- errors.New("too late")
	b.untouched(outcomeRetried, func() bool { return b.counted(outcomeRetried) == 1 })
	heir <- nil
	b.settled()
	if r := b.receipts("1"); len(r) != 1 {
		t.Errorf("receipts %v", r)
	}
}

// A job that a person cancelled ends so, and its late outcome is refused.
func TestCancelledByAPerson(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	began := make(chan struct{}, 1)
	b.start(Work(spec(func(ctx context.Context, _ chargeJob) (any, error) {
		began <- struct{}{}
		<-ctx.Done()
		return nil, ctx.Err()
	})))
	b.ask("1")
	receive(t, "the attempt begins", began)
	client, err := outside(t.Context(), b.db.Pool)
	must(t, err)
	_, err = client.JobCancel(t.Context(), one[int64](t, b.db.Pool, "select id from river_job"))
	must(t, err)
	b.until("the job is cancelled", "select state = 'cancelled' from river_job")
}

// What is being done at a stop may end; what takes longer is given back as if it had not been tried.
func TestStopGivesBack(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	began := make(chan string, 2)
	finish := make(chan struct{})
	c, err := Start(t.Context(), []Definition{Work(spec(func(ctx context.Context, a chargeJob) (any, error) {
		began <- a.Order
		if a.Order == "quick" {
			<-finish
			return receipt(ctx, a)
		}
		<-ctx.Done()
		return nil, ctx.Err()
	}))}, Options{Store: b.store, Metrics: b.metrics})
	must(t, err)
	b.ask("quick")
	b.ask("slow")
	receive(t, "an attempt begins", began)
	receive(t, "another attempt begins", began)
	stopped := make(chan error, 1)
	go func() { stopped <- c.Stop(context.Background()) }()
	close(finish)
	must(t, receive(t, "the client stops", stopped))
	if !one[bool](t, b.db.Pool, "select state = 'completed' from river_job where args ->> 'order' = 'quick'") {
		t.Errorf("the quick job was not completed: %s", b.jobs())
	}
	if !one[bool](t, b.db.Pool, "select state = 'available' and attempt = 0 from river_job where args ->> 'order' = 'slow'") {
		t.Errorf("the slow job was not given back: %s", b.jobs())
	}
	b.until("the lock is given up", "select ("+locksHeld+") = 0")
	now, err := decider.Load(t.Context(), b.store, charges(), "charge-slow")
	must(t, err)
	if len(now.State.Receipt) != 0 {
		t.Error("the slow job has a receipt")
	}
}
