package jobs

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sony/gobreaker/v2"
)

// TestBreakerOpensAndRecovers: while the provider is down it is hardly asked, and once it is back all is done.
func TestBreakerOpensAndRecovers(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	var up atomic.Bool
	var calls atomic.Int64
	b.start(Work(spec(func(ctx context.Context, a chargeJob) (any, error) {
		calls.Add(1)
		if !up.Load() {
			return nil, errors.New("connection refused")
		}
		return receipt(ctx, a)
	})))
	const orders = 200
	for i := range orders {
		b.ask(fmt.Sprint(i))
	}
	down := time.Now()
	for b.counted(outcomeSnoozed) < orders {
		if time.Since(down) > patience {
			t.Fatal("the breaker does not open")
		}
		<-time.After(5 * time.Millisecond)
	}
	// As many as fit may be under way when it opens; then probes, as often as it is half open.
	most := int64(maxWorkers + breakerConsecutive + breakerProbes*(1+time.Since(down)/breakerOpen))
	if n := calls.Load(); n > most {
		t.Errorf("the provider was asked %d times while it was down; at most %d were expected", n, most)
	}
	up.Store(true)
	b.settled()
	if n := one[int64](t, b.db.Pool, "select sum(attempt) from river_job"); n != calls.Load() {
		t.Errorf("%d attempts are counted for %d calls: what was not tried must not count", n, calls.Load())
	}
	if n := b.counted(outcomeCompleted); n != orders {
		t.Errorf("%v of %d completed", n, orders)
	}
	if s := b.metric("feira_job_breaker_state", "test_charge"); s != float64(gobreaker.StateClosed) {
		t.Errorf("the breaker's state is %v", s)
	}
}

// An answer that is no outcome says that the other side is there; it does not open the breaker.
func TestReachedDoesNotOpenTheBreaker(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	var calls atomic.Int64
	s := spec(func(ctx context.Context, a chargeJob) (any, error) {
		if calls.Add(1) <= 3*breakerConsecutive {
			return nil, errors.New("bad request")
		}
		return receipt(ctx, a)
	})
	s.Reached = func(error) bool { return true }
	b.start(Work(s))
	for i := range 3 * breakerConsecutive {
		b.ask(fmt.Sprint(i))
	}
	b.settled()
	if n := b.counted(outcomeSnoozed); n != 0 {
		t.Errorf("%v attempts met an open breaker", n)
	}
}

func TestRatioOpensTheBreaker(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		counts gobreaker.Counts
		opens  bool
	}{
		{"few failures", gobreaker.Counts{Requests: 100, TotalFailures: 60, ConsecutiveFailures: 9}, false},
		{"in a row", gobreaker.Counts{Requests: 10, TotalFailures: 10, ConsecutiveFailures: 10}, true},
		{"most of many", gobreaker.Counts{Requests: 30, TotalFailures: 21, ConsecutiveFailures: 2}, true},
		{"most of few", gobreaker.Counts{Requests: 9, TotalFailures: 8, ConsecutiveFailures: 2}, false},
	} {
		if readyToTrip(c.counts) != c.opens {
			t.Errorf("%s: opens is %v", c.name, !c.opens)
		}
	}
}
