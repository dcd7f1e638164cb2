package jobs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/feira-shop/feira/shared/decider"
	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/eventstore"
	"github.com/feira-shop/feira/shared/pg/pgtest"
)

func TestOutcomeIsWrittenWithTheCompletion(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	s := spec(receipt)
	s.Meta = func(a chargeJob) events.Meta { return events.Meta{Correlation: "story of " + a.Order, Actor: "tester"} }
	b.start(Work(s))
	for i := range 50 {
		b.ask(fmt.Sprint(i))
	}
	b.settled()
	for i := range 50 {
		if r := b.receipts(fmt.Sprint(i)); len(r) != 1 {
			t.Errorf("order %d has receipts %v", i, r)
		}
	}
	history, err := b.store.History(t.Context(), "charge-7", eventstore.Until{})
	must(t, err)
	last := history[len(history)-1]
	job := one[int64](t, b.db.Pool, "select id from river_job where args ->> 'order' = '7'")
	if last.Correlation != "story of 7" || last.Actor != "tester" || last.Causation != fmt.Sprintf("job/test_charge/%d", job) {
		t.Errorf("the outcome says %+v", last.Meta)
	}
	if n := b.counted(outcomeCompleted); n != 50 {
		t.Errorf("%v attempts counted as completed", n)
	}
	if n := b.metric("feira_job_duration_seconds", "test_charge"); n != 50 {
		t.Errorf("%v durations", n)
	}
}

// TestANewJobStartsAtOnce: well before River would poll.
func TestANewJobStartsAtOnce(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	began := make(chan time.Time, 100)
	b.start(Work(spec(func(ctx context.Context, a chargeJob) (any, error) {
		began <- time.Now()
		return receipt(ctx, a)
	})))
	fastest := time.Hour
	for i := range 20 {
		asked := time.Now()
		b.ask(fmt.Sprint(i))
		fastest = min(fastest, receive(t, "the job begins", began).Sub(asked))
	}
	if fastest > fetchPollInterval/4 {
		t.Errorf("the fastest of 20 jobs began after %s: notifications do not arrive", fastest)
	}
}

// A provider that charges and then times out: the job asks again with the same key, and one charge is made.
func TestChargedOnceThroughTimeouts(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	var (
		mu      sync.Mutex
		charges = map[string]int{}
		asks    atomic.Int64
	)
	provider := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		asks.Add(1)
		mu.Lock()
		charges[r.Header.Get("Idempotency-Key")]++
		first := charges[r.Header.Get("Idempotency-Key")] == 1
		mu.Unlock()
		if first {
			<-r.Context().Done() // charged, but too late
		}
	}))
	defer provider.Close()
	s := spec(func(ctx context.Context, a chargeJob) (any, error) {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, provider.URL, nil)
		if err != nil {
			return nil, err
		}
		req.Header.Set("Idempotency-Key", a.Order)
		res, err := provider.Client().Do(req)
		if err != nil {
			return nil, err
		}
		return got{Order: a.Order, Receipt: res.Status}, res.Body.Close()
	})
	s.Timeout = 100 * time.Millisecond
	b.start(Work(s))
	b.ask("1")
	b.ask("2")
	b.settled()
	if n := asks.Load(); n < 4 {
		t.Errorf("asked %d times; each job must have asked again", n)
	}
	for _, order := range []string{"1", "2"} {
		if r := b.receipts(order); len(r) != 1 || r[0] != "200 OK" {
			t.Errorf("order %s has receipts %v", order, r)
		}
	}
}

func TestARefusedOutcomeIsKeptAndRetried(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	var repaired atomic.Bool
	tried := make(chan struct{}, 100)
	s := spec(receipt)
	decide := s.Decider.Decide
	s.Decider.Decide = func(c charge, cmd any) ([]events.Event, error) {
		if repaired.Load() {
			return decide(c, cmd)
		}
		tried <- struct{}{}
		return nil, errors.New("I did not expect this")
	}
	b.start(Work(s))
	b.ask("1")
	receive(t, "a first try", tried)
	receive(t, "a second try", tried)
	if r := b.receipts("1"); len(r) != 0 {
		t.Errorf("refused, but has receipts %v", r)
	}
	repaired.Store(true)
	b.settled()
	if n := b.counted(outcomeRefused); n < 2 {
		t.Errorf("%v refused outcomes counted", n)
	}
	text := one[string](t, b.db.Pool, "select errors[1] ->> 'error' from river_job")
	if !strings.Contains(text, "I did not expect this") || !strings.Contains(text, "jobs.got") {
		t.Errorf("the job says %q", text)
	}
}

func TestPanicsAreRetried(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	var calls, decisions atomic.Int64
	s := spec(func(ctx context.Context, a chargeJob) (any, error) {
		if calls.Add(1) == 1 {
			panic("in Do")
		}
		return receipt(ctx, a)
	})
	decide := s.Decider.Decide
	s.Decider.Decide = func(c charge, cmd any) ([]events.Event, error) {
		if decisions.Add(1) == 1 {
			panic("in Decide")
		}
		return decide(c, cmd)
	}
	b.start(Work(s))
	b.ask("1")
	b.settled()
	if r := b.receipts("1"); len(r) != 1 {
		t.Errorf("receipts %v", r)
	}
	if p, r := b.counted(outcomePanicked), b.counted(outcomeRefused); p != 1 || r != 1 {
		t.Errorf("%v panics in Do and %v in Decide counted", p, r)
	}
}

// A job that was tried as often as River's column can count is still tried again, and keeps its last errors.
func TestJobsNeverExpire(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.ask("1")
	execSQL(t, b.db.Pool, `update river_job set attempt = max_attempts - 1,
 errors = array_fill('{"at": "2026-01-01T00:00:00Z", "attempt": 1, "error": "old", "trace": ""}'::jsonb, array[30])`)
	b.start(Work(spec(func(context.Context, chargeJob) (any, error) { return nil, errors.New("no answer") })))
	b.until("the failed job waits for another attempt", `select state = 'available' and attempt = max_attempts - 1
 and scheduled_at > now() + interval '30 seconds' and cardinality(errors) = 10
 and errors[9] ->> 'error' = 'old' and errors[10] ->> 'error' = 'no answer' from river_job`)
	if limit := one[int](t, b.db.Pool, "select max_attempts from river_job"); limit != attemptsWithoutEnd {
		t.Errorf("at most %d attempts", limit)
	}
}

func TestBackoffGrowsToAMinute(t *testing.T) {
	t.Parallel()
	for attempt := 1; attempt < 40_000; attempt = attempt*3/2 + 1 {
		wait := waitAfter(attempt)
		if wait < firstBackoff*4/5 || wait > maxBackoff*6/5 {
			t.Errorf("after attempt %d: %s", attempt, wait)
		}
	}
	if first, tenth := waitAfter(1), waitAfter(10); first > time.Second/4 || tenth < maxBackoff*4/5 {
		t.Errorf("%s after the first, %s after the tenth attempt", first, tenth)
	}
}

func TestPauseAndResumeFromOutside(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	outside := openPool(t, b.db.DSN)
	must(t, Pause(t.Context(), outside)) // before the service ever ran
	began := make(chan string, 100)
	begin := func(ctx context.Context, a chargeJob) (any, error) {
		began <- a.Order
		return receipt(ctx, a)
	}
	b.start(Work(spec(begin)))
	paused, err := Paused(t.Context(), outside)
	must(t, err)
	if !paused {
		t.Error("the queue does not say that it is paused")
	}
	b.ask("1")
	select {
	case order := <-began:
		t.Fatalf("job %s was begun while paused", order)
	case <-time.After(3 * fetchPollInterval):
	}
	must(t, Resume(t.Context(), outside))
	receive(t, "the job begins", began)
	b.settled()

	// And while it runs. What was fetched just before still ends, so ask until one stays.
	must(t, Pause(t.Context(), outside))
	for i := 0; ; i++ {
		b.ask(fmt.Sprint("again-", i))
		select {
		case <-began:
			if i > 100 {
				t.Fatal("jobs are begun for ever after the pause")
			}
			continue
		case <-time.After(3 * fetchPollInterval):
		}
		break
	}
	must(t, Resume(t.Context(), outside))
	b.settled()
}

func TestUnknownKindsAreKept(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.start(Work(spec(receipt)))
	execSQL(t, b.db.Pool, "insert into river_job (kind, args, max_attempts) values ('from_another_release', '{}', 25)")
	b.until("River gave it back", `select state in ('available', 'retryable') and coalesce(cardinality(errors), 0) > 0 from river_job`)
	b.ask("1")
	b.until("the others go on", "select state = 'completed' from river_job where kind = 'test_charge'")
}

func TestStartNamesWhatIsWrong(t *testing.T) {
	t.Parallel()
	twice := []Definition{Work(spec(receipt)), Work(spec(receipt)), {Kind: "by hand"}}
	_, err := Start(t.Context(), twice, Options{})
	var wrong *ConfigError
	if !errors.As(err, &wrong) || len(wrong.Problems) != 3 {
		t.Errorf("got %v", err)
	}
	none, err := Start(t.Context(), nil, Options{Store: eventstore.New(nil, eventstore.Options{})})
	must(t, err)
	must(t, none.Health())
	must(t, none.Stop(t.Context()))
}

func TestArgumentsThatAreNoJSONFailTheAppend(t *testing.T) {
	t.Parallel()
	if job := New(unwritable{}); json.Valid(job.Args) {
		t.Errorf("args are %s", job.Args)
	}
}

type unwritable struct{ F func() }

func (unwritable) Kind() string { return "unwritable" }

func TestMigrateAtTheSameTime(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t, eventstore.Migrations())
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			if err := Migrate(t.Context(), db.DSN); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if n := one[int](t, db.Pool, "select count(*) from river_job"); n != 0 {
		t.Errorf("%d jobs", n)
	}
}

// Two jobs of one aggregate whose outcomes arrive together: one conflicts, decides again, and both are written.
func TestOutcomesThatMeetDecideAgain(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	var together sync.WaitGroup
	together.Add(8)
	s := spec(func(ctx context.Context, a chargeJob) (any, error) {
		together.Done()
		together.Wait()
		return receipt(ctx, a)
	})
	for range 8 {
		b.ask("1")
	}
	b.start(Work(s))
	b.settled()
	if r := b.receipts("1"); len(r) != 8 {
		t.Errorf("%d outcomes of 8 are written", len(r))
	}
	now, err := decider.Load(t.Context(), b.store, charges(), "charge-1")
	must(t, err)
	if now.Version != 16 {
		t.Errorf("version %d", now.Version)
	}
}
