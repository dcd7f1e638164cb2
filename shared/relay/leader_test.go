package relay

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/faulttest"
)

// holder is the server process of the session that leads, 0 if nobody does.
func (e *env) holder() (pid int) {
	e.t.Helper()
	e.scan(&pid, `select coalesce(max(pid), 0) from pg_locks where locktype = 'advisory' and granted and objsubid = 1
and database = (select oid from pg_database where datname = current_database())
and classid = ($1::bigint >> 32)::oid and objid = ($1::bigint & 4294967295)::oid`, leaderLock)
	return pid
}

// elect makes a leader without running it.
func (e *env) elect() *leader {
	e.t.Helper()
	r := New(e.options())
	r.timing = quick()
	l, err := r.elect(e.t.Context())
	if err != nil {
		e.t.Fatal(err)
	}
	if err := l.prepare(e.t.Context()); err != nil {
		e.t.Fatal(err)
	}
	return l
}

func TestFaultThreeRelays(t *testing.T) {
	t.Parallel()
	run := faulttest.Begin(t, faulttest.Plan{Name: "Three relays",
		Does: "has three processes relay 10,000 events of one store: each is published once, under its id in the store"})
	e := newEnv(t, events.Orders)
	relays := []*process{e.process(), e.process(), e.process()}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 50 {
				if err := e.tryAppend(placed, keys(50)...); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	e.drained()
	e.until("all three have asked for the lead", func() bool { return e.sessions() == 3 })
	for _, p := range relays { // a wanted stop repeats nothing
		p.stop()
	}
	run.Count("events", int(e.ends()))
	if n := e.check(); n != 0 || e.ends() != 10_000 {
		t.Errorf("%d records, %d of them repeated; expected 10000 and none", e.ends(), n)
	}
}

// Whoever leads is cut off now and then, most often while it sends.
func TestOrderHoldsWhenLeadersLoseTheirSession(t *testing.T) {
	t.Parallel()
	e := newEnv(t, events.Orders)
	for range 3 {
		e.start(func(r *Relay) { r.timing.ping = 5 * time.Millisecond })
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	for range 6 {
		e.append(placed, keys(200)...)
		e.onProduce(1+random.IntN(3), func() {
			e.exec("select pg_terminate_backend($1) where $1 <> 0", e.holder())
			time.Sleep(20 * time.Millisecond) // the answer comes when its session is gone
		})
		time.Sleep(time.Duration(random.IntN(50)) * time.Millisecond)
	}
	e.append(placed, "last")
	e.drained()
	t.Logf("%d events were repeated", e.check())
}

func TestFaultLeaderWithoutItsSession(t *testing.T) {
	t.Parallel()
	faulttest.Begin(t, faulttest.Plan{Name: "Leader without its session",
		Does: "ends the session that holds the leader's lock while the leader publishes: it stops within one batch"})
	e := newEnv(t, events.Orders)
	e.append(placed, keys(2*maxEvents)...)
	l := e.elect()
	defer func() { _ = l.close(context.Background()) }()
	l.relay.timing.ping = 10 * time.Millisecond
	release := make(chan struct{})
	e.onProduce(1, func() {
		e.exec("select pg_terminate_backend($1)", e.holder())
		<-release
	})
	err := l.publish(t.Context()) // returns although the broker does not answer
	close(release)
	if err == nil || stops(err) {
		t.Errorf("got %v", err)
	}
	if n := e.ends(); n > maxEvents {
		t.Errorf("%d records were written", n)
	}
	if got := e.cursor(); got != 0 {
		t.Errorf("the cursor moved to %d", got)
	}
}

// The term alone refuses an earlier leader: here nothing has moved yet.
func TestFaultEarlierLeader(t *testing.T) {
	t.Parallel()
	faulttest.Begin(t, faulttest.Plan{Name: "Earlier leader",
		Does: "raises the term under a leader that still has its session: the cursor is refused to it"})
	e := newEnv(t, events.Orders)
	e.append(placed, keys(10)...)
	l := e.elect()
	defer func() { _ = l.close(context.Background()) }()
	e.exec("update relay_cursor set term = term + 1")
	if _, err := l.round(t.Context()); !errors.Is(err, errFenced) {
		t.Errorf("moving the cursor: %v", err)
	}
	if got := e.cursor(); got != 0 {
		t.Errorf("the cursor moved to %d", got)
	}
	var kept int
	if e.scan(&kept, "select count(*) from relay_partitions"); kept != 0 {
		t.Errorf("%d partitions were written", kept)
	}
}

// A process that is stopped while it sends loses the lead; awake again it changes nothing.
func TestAFrozenProcessIsReplaced(t *testing.T) {
	t.Parallel()
	e := newEnv(t, events.Orders)
	p := e.process()
	e.append(placed, keys(10)...)
	e.drained()
	frozen := e.holder()
	if frozen == 0 {
		t.Fatal("nobody leads")
	}
	stopped := make(chan time.Time, 1)
	e.onProduce(1, func() {
		p.freeze()
		stopped <- time.Now()
	})
	e.append(placed, keys(200)...)
	began := <-stopped
	r, _ := e.start(func(r *Relay) { r.timing = defaults })
	e.append(placed, keys(200)...)
	e.drained()
	took := time.Since(began)
	t.Logf("takeover after %s", took)
	if took > 10*time.Second {
		t.Errorf("the takeover took %s", took)
	}
	if value(r.metrics.leader) != 1 || e.holder() == frozen {
		t.Error("the frozen process still leads")
	}
	p.thaw()
	e.append(placed, keys(200)...)
	e.drained()
	if n := e.check(); n != 200 {
		t.Errorf("%d events were repeated, want the 200 whose cursor the frozen process could not move", n)
	}
}

// While the server sends to a client that does not read, no timeout of the server ends the session.
func TestALeaderThatDoesNotReadIsReplaced(t *testing.T) {
	t.Parallel()
	e := newEnv(t, events.Orders)
	conn, err := pgx.Connect(t.Context(), e.db.DSN)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(t.Context()) }()
	if _, err := conn.Exec(t.Context(), "select pg_advisory_lock($1)", leaderLock); err != nil {
		t.Fatal(err)
	}
	conn.PgConn().Frontend().SendQuery(&pgproto3.Query{String: "select repeat('x', 1000000) from generate_series(1, 1000)"})
	if err := conn.PgConn().Frontend().Flush(); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	e.append(placed, keys(10)...)
	e.start(func(r *Relay) { r.timing = defaults })
	e.drained()
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("the takeover took %s", took)
	}
}

func TestFaultAnotherNumberOfPartitions(t *testing.T) {
	t.Parallel()
	faulttest.Begin(t, faulttest.Plan{Name: "Another number of partitions",
		Does: "adds a partition under a running relay: it stops by name, before it publishes anything by the new number, and so does one that starts"})
	e := newEnv(t, events.Orders)
	e.append(placed, keys(10)...)
	_, stop := e.start()
	e.drained()
	stop()

	running := e.elect()
	addPartition(t, e)
	e.append(placed, keys(10)...)
	if _, err := running.publisher.RefreshPartitions(e.topic.Name); err != nil { // what happens every 15 s by itself
		t.Fatal(err)
	}
	var count *PartitionCountError
	ctx, cancel := context.WithTimeout(t.Context(), patience/3)
	defer cancel()
	if err := running.publish(ctx); !errors.As(err, &count) || count.Have != 7 || count.Want != 6 || count.Topic != "orders" {
		t.Fatalf("the running leader: %v", errors.Join(err, running.close(t.Context())))
	}
	if err := running.close(t.Context()); err != nil {
		t.Error(err)
	}

	r, _ := e.start()
	e.until("the relay has stopped", func() bool { return r.Health() != nil })
	if !errors.As(r.Health(), &count) {
		t.Errorf("got %v", r.Health())
	}
	if e.ends() != 10 || value(r.metrics.stopped) != 1 || value(r.metrics.leader) != 0 {
		t.Errorf("%d records, stopped %v, leader %v", e.ends(), value(r.metrics.stopped), value(r.metrics.leader))
	}
}

func addPartition(t *testing.T, e *env) {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(e.broker.Brokers()...))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if _, err := kadm.NewClient(client).CreatePartitions(t.Context(), 1, e.topic.Name); err != nil {
		t.Fatal(err)
	}
}
