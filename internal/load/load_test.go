package load

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func good(context.Context, int64) (string, error) { return "201", nil }

func run1(t *testing.T, o Options) Summary {
	t.Helper()
	s, err := Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestAStallShowsInEveryRequestThatWasDueInIt: one request takes half of the run, and those that were due behind
// it waited. Measured from when each was sent, only that one would be slow.
func TestAStallShowsInEveryRequestThatWasDueInIt(t *testing.T) {
	t.Parallel()
	s := run1(t, Options{Rate: 100, Duration: time.Second, InFlight: 1, Do: func(_ context.Context, n int64) (string, error) {
		if n == 10 {
			time.Sleep(500 * time.Millisecond) // the stall itself
		}
		return "201", nil
	}})
	if s.P90 < 250*time.Millisecond || s.Max < 500*time.Millisecond {
		t.Errorf("p90 %s and max %s of a run that stood still for half of its time", s.P90, s.Max)
	}
}

func TestAnOpenLoopSendsWhatIsDue(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	seen := map[int64]bool{}
	s := run1(t, Options{Rate: 200, Duration: 500 * time.Millisecond, Do: func(_ context.Context, n int64) (string, error) {
		mu.Lock()
		defer mu.Unlock()
		seen[n] = true
		return "201", nil
	}})
	if s.Sent+s.Unsent != 100 || int64(len(seen)) != s.Sent || s.OK != s.Sent || s.InFlight != 0 || s.Words["201"] != s.Sent {
		t.Errorf("%d requests, summary %+v; want 100", len(seen), s)
	}
	if s.Elapsed < 495*time.Millisecond {
		t.Errorf("the load came in %s instead of 500 ms", s.Elapsed)
	}
}

func TestAnOverloadIsBoundedAndSaidSo(t *testing.T) {
	t.Parallel()
	var now, most atomic.Int64
	s := run1(t, Options{Rate: 1000, Duration: 300 * time.Millisecond, InFlight: 2, Do: func(context.Context, int64) (string, error) {
		if n := now.Add(1); n > most.Load() {
			most.Store(n)
		}
		time.Sleep(50 * time.Millisecond) // a slow shop
		now.Add(-1)
		return "201", nil
	}})
	if most.Load() > 2 || s.Unsent < 200 || s.Sent+s.Unsent != 300 {
		t.Errorf("%d at once; %+v", most.Load(), s)
	}
	if s.P50 < 100*time.Millisecond {
		t.Errorf("requests that were never sent do not count: p50 %s", s.P50)
	}
	var out strings.Builder
	if err := s.Write(&out); err != nil || !strings.Contains(out.String(), "unsent") {
		t.Errorf("%s %v", out.String(), err)
	}
}

func TestAClosedLoopHasSoManyClients(t *testing.T) {
	t.Parallel()
	var now, most atomic.Int64
	s := run1(t, Options{Clients: 4, Duration: 200 * time.Millisecond, Do: func(context.Context, int64) (string, error) {
		if n := now.Add(1); n > most.Load() {
			most.Store(n)
		}
		time.Sleep(time.Millisecond) // a shop
		now.Add(-1)
		return "", errors.New("broken")
	}})
	if most.Load() > 4 || s.Sent < 4 || s.Failed != s.Sent || s.Words["no answer"] != s.Sent || s.Achieved != 0 {
		t.Errorf("%d at once; %+v", most.Load(), s)
	}
}

func TestRequestsWithoutAnAnswerAreGivenUp(t *testing.T) {
	t.Parallel()
	s := run1(t, Options{Clients: 2, Duration: 50 * time.Millisecond, Drain: 50 * time.Millisecond, Do: func(ctx context.Context, _ int64) (string, error) {
		<-ctx.Done()
		return "", ctx.Err()
	}})
	if s.Sent != 2 || s.Words["timeout"] != 2 || s.P50 < 90*time.Millisecond {
		t.Errorf("%+v", s)
	}
}

func TestProgressComesAndRunEndsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	var last Summary // written by one goroutine, which has ended when Run returns
	s, err := Run(ctx, Options{Rate: 50, Duration: time.Hour, Do: good, Every: 20 * time.Millisecond, Progress: func(now Summary) {
		last = now
		cancel()
	}})
	if err != nil || last.Sent != s.Sent || last.Target != time.Hour || s.Elapsed > time.Minute {
		t.Errorf("last progress %+v, summary %+v, %v", last, s, err)
	}
}

func TestOptionsAreBounded(t *testing.T) {
	t.Parallel()
	for want, o := range map[string]Options{
		"Do":       {Rate: 1, Duration: 1},
		"either":   {Rate: 1, Clients: 1, Duration: 1, Do: good},
		"Rate":     {Rate: MaxRate + 1, Duration: 1, Do: good},
		"Clients":  {Clients: MaxClients + 1, Duration: 1, Do: good},
		"Duration": {Clients: 1, Duration: MaxDuration + 1, Do: good},
		"InFlight": {Rate: 1, InFlight: MaxClients + 1, Duration: 1, Do: good},
	} {
		if _, err := Run(t.Context(), o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v does not name %s", o, err, want)
		}
	}
}
