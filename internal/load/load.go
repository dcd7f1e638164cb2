package load

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// Bounds of a run.
const (
	MaxRate     = 100_000 // requests per second
	MaxClients  = 10_000
	MaxDuration = 24 * time.Hour

	defaultInFlight = 1000
	defaultEvery    = 500 * time.Millisecond
	defaultDrain    = 10 * time.Second
)

// Do sends request n (0, 1, 2 …) and says in a word how it was answered, for example "201". An error counts as a
// failure under that word; the word "" stands for the error's own.
type Do func(ctx context.Context, n int64) (word string, err error)

// Options say what load, and for how long. Exactly one of Rate and Clients must be set.
type Options struct {
	Do       Do
	Rate     float64       // open loop: requests per second, up to [MaxRate]
	Clients  int           // closed loop: clients, up to [MaxClients]
	Duration time.Duration // up to [MaxDuration]; no request is sent later
	// InFlight is how many requests of an open loop may be unanswered at a time, up to [MaxClients]; 0: 1000.
	// Further ones wait, which counts as latency.
	InFlight int
	// Drain is how long requests that were sent may take at the end; 0: 10 s. Then they are given up and fail.
	Drain    time.Duration
	Progress func(Summary) // called every Every and at the end, from one goroutine; nil: never
	Every    time.Duration // 0: 500 ms
}

func (o *Options) validate() error {
	var wrong []error
	if o.Do == nil {
		wrong = append(wrong, errors.New("option Do is missing: there is nothing to send"))
	}
	if (o.Rate != 0) == (o.Clients != 0) {
		wrong = append(wrong, errors.New("set either Rate (open loop) or Clients (closed loop)"))
	}
	if o.Rate < 0 || o.Rate > MaxRate {
		wrong = append(wrong, fmt.Errorf("option Rate %g must be over 0 and at most %d per second", o.Rate, MaxRate))
	}
	if o.Clients < 0 || o.Clients > MaxClients {
		wrong = append(wrong, fmt.Errorf("option Clients %d must be 1 to %d", o.Clients, MaxClients))
	}
	if o.Duration <= 0 || o.Duration > MaxDuration {
		wrong = append(wrong, fmt.Errorf("option Duration %s must be over 0 and at most %s", o.Duration, MaxDuration))
	}
	if o.InFlight < 0 || o.InFlight > MaxClients {
		wrong = append(wrong, fmt.Errorf("option InFlight %d must be 1 to %d", o.InFlight, MaxClients))
	}
	if err := errors.Join(wrong...); err != nil {
		return fmt.Errorf("load: %w", err)
	}
	if o.InFlight == 0 {
		o.InFlight = defaultInFlight
	}
	if o.Drain <= 0 {
		o.Drain = defaultDrain
	}
	if o.Every <= 0 {
		o.Every = defaultEvery
	}
	return nil
}

// Run puts the load on and returns when all of it was answered or given up. When ctx ends, so does the load, and
// the summary covers what there was.
func Run(ctx context.Context, o Options) (Summary, error) {
	if err := o.validate(); err != nil {
		return Summary{}, err
	}
	r := &run{opts: o, began: time.Now(), record: newRecord(o)}
	ctx, giveUp := context.WithDeadline(ctx, r.began.Add(o.Duration+o.Drain))
	defer giveUp()
	stopProgress := r.report()
	workers := o.Clients
	if o.Rate > 0 {
		workers = min(o.InFlight, int(o.Rate*o.Duration.Seconds())+1)
	}
	var all sync.WaitGroup
	for range workers {
		all.Go(func() { r.work(ctx) })
	}
	all.Wait()
	stopProgress()
	return r.record.summary(time.Since(r.began)), nil
}

type run struct {
	opts   Options
	began  time.Time
	next   atomic.Int64
	record *record
}

// work takes requests one after the other. In an open loop each request has its time from the start, so a worker
// that gets one late sends it at once and the delay counts.
func (r *run) work(ctx context.Context) {
	end := r.began.Add(r.opts.Duration)
	for ctx.Err() == nil {
		n := r.next.Add(1) - 1
		due := time.Now()
		if r.opts.Rate > 0 {
			due = r.began.Add(time.Duration(float64(n) / r.opts.Rate * float64(time.Second)))
		}
		if !due.Before(end) || !waitUntil(ctx, due) {
			return
		}
		if !time.Now().Before(end) {
			r.record.unsent(end.Sub(due)) // it was due and there was no room for it until the end
			continue
		}
		r.record.sent()
		word, err := r.opts.Do(ctx, n)
		r.record.answered(word, err, time.Since(due))
	}
}

func waitUntil(ctx context.Context, t time.Time) bool {
	wait := time.Until(t)
	if wait <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// report calls Progress until the returned function is called, and once more then.
func (r *run) report() (stop func()) {
	if r.opts.Progress == nil {
		return func() {}
	}
	done := make(chan struct{})
	var reporter sync.WaitGroup
	reporter.Go(func() {
		tick := time.NewTicker(r.opts.Every)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				r.opts.Progress(r.record.summary(time.Since(r.began)))
			case <-done:
				r.opts.Progress(r.record.summary(time.Since(r.began)))
				return
			}
		}
	})
	return func() {
		close(done)
		reporter.Wait()
	}
}
