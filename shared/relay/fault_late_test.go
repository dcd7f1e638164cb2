package relay

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/feira-shop/feira/shared/eventstore"
	"github.com/feira-shop/feira/shared/faulttest"
)

// Two processes append, some through the group commit. Of the other transactions one in a hundred is held after it has
// inserted its events, and one in twenty is rolled back.
func TestFaultLateCommit(t *testing.T) {
	t.Parallel()
	run := faulttest.Begin(t, faulttest.Plan{Number: 1, Name: "Late commit",
		Does: "holds 1 % of the appending transactions for up to 3 s and rolls 5 % back, beside a forgotten one: none skipped, none reordered, relay lag p99 below 5 s"})
	e := newEnv(t, threePartitions())
	e.exec(holdCommit)
	e.forgotten(t)
	stores := []*eventstore.Store{e.store(9), e.store(4)}
	_, stop := e.start(func(r *Relay) { r.opts.Store, r.timing = stores[0], defaults })
	tail := e.follow()

	longest := run.For(time.Second, 3*time.Second)
	dice, mu := run.Dice(), sync.Mutex{}
	var began atomic.Int64
	l := &load{e: e, stores: stores, writers: 8, perTx: 10, pace: run.For(40*time.Millisecond, 400*time.Millisecond),
		enough: int64(run.Times(4000, 50_000)), dice: run.Dice}
	l.commit = func(ctx context.Context, w int, s *eventstore.Store, appends []eventstore.Append) error {
		if w < 2 {
			return grouped(ctx, w, s, appends)
		}
		n, ms := began.Add(1), int64(0)
		if n%100 == 37 {
			mu.Lock()
			ms = dice.Int64N(longest.Milliseconds())
			mu.Unlock()
			run.Count("held", 1)
		}
		fail := n%20 == 11
		if fail {
			run.Count("rolled back", 1)
		}
		return inTx(ctx, s, appends, "hold_commit", ms, fail)
	}
	l.start()
	l.working.Wait()
	e.drained()
	stop()

	run.Count("events", int(l.committed.Load()))
	if n := e.oracle(l.committed.Load()); n != 0 {
		t.Errorf("%d events were repeated", n)
	}
	if t.Failed() {
		return // what was skipped never arrives
	}
	lag := tail.lags(int(l.committed.Load()))
	run.Found("relay lag p50, p99, worst", lag[len(lag)/2].String()+", "+lag[len(lag)*99/100].String()+", "+lag[len(lag)-1].String())
	if p99 := lag[len(lag)*99/100]; p99 > 5*time.Second {
		t.Errorf("relay lag p99 is %s", p99)
	}
}

// tail reads a topic as it is written.
type tail struct {
	e    *env
	mu   sync.Mutex
	seen []time.Duration // from the insert of each record's event to its arrival
}

// follow reads the topic until the test ends.
func (e *env) follow() *tail {
	e.t.Helper()
	parts := map[int32]kgo.Offset{}
	for n := range e.topic.Partitions {
		parts[n] = kgo.NewOffset().AtStart()
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(e.broker.Brokers()...), kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{e.topic.Name: parts}))
	if err != nil {
		e.t.Fatal(err)
	}
	f := &tail{e: e}
	var reading sync.WaitGroup
	reading.Go(func() {
		for {
			fetched := client.PollFetches(context.Background())
			if fetched.IsClientClosed() {
				return
			}
			now := time.Now()
			f.mu.Lock()
			fetched.EachRecord(func(r *kgo.Record) { f.seen = append(f.seen, now.Sub(r.Timestamp)) }) // recorded_at, by the millisecond
			f.mu.Unlock()
		}
	})
	e.t.Cleanup(func() {
		client.Close()
		reading.Wait()
	})
	return f
}

// lags are those of all records, sorted, once there are n.
func (f *tail) lags(n int) []time.Duration {
	f.e.t.Helper()
	var all []time.Duration
	f.e.until("the log is read", func() bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		all = slices.Sorted(slices.Values(f.seen))
		return len(all) >= n
	})
	return all
}
