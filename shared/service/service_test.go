package service

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/feira-shop/feira/shared/decider"
	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/eventstore"
	"github.com/feira-shop/feira/shared/kafka"
	"github.com/feira-shop/feira/shared/kafka/kafkatest"
	"github.com/feira-shop/feira/shared/operator"
	"github.com/feira-shop/feira/shared/pg/pgtest"
)

// patience bounds what a test waits for, on a loaded machine.
const patience = 60 * time.Second

func TestMain(m *testing.M) {
	pgtest.Main(m)
}

// mirror is an operator that writes down which orders it heard of.
type mirror struct{}

func (mirror) Apply(_ context.Context, tx *eventstore.Tx, batch []operator.Record) error {
	for _, r := range batch {
		tx.Later("insert into heard (who) values ($1)", r.Event.(events.PointsEarned).Order)
	}
	return nil
}

func mirrored(name string) operator.Definition {
	return operator.Definition{Name: name, Topics: []events.Topic{events.Loyalty}, Handler: func(*eventstore.Store) operator.Handler { return mirror{} }}
}

// definition is a service that hears what it says.
func definition() Definition {
	return Definition{
		Name: "loyalty", Publishes: events.Loyalty,
		Streams: []decider.Kind{decider.KindOf("points-", 1, 0, func(n int, _ events.Event) int { return n + 1 })},
		Schema: fstest.MapFS{"migrations/00001_heard.sql": {Data: []byte("-- +goose Up\ncreate table heard (who text primary key);\n" +
			"-- +goose Down\ndrop table heard;\n")}},
		Operators: []operator.Definition{mirrored("loyalty.mirror")},
	}
}

// earn appends an event that is published.
func earn(ctx context.Context, store *eventstore.Store, order string) error {
	meta := events.Meta{ID: uuid.NewString(), Time: time.Now()}
	encoded, err := eventstore.Encode(meta, events.PointsEarned{Customer: "ana", Order: order, Points: 1})
	if err != nil {
		return err
	}
	_, err = store.Append(ctx, eventstore.Append{Stream: "points-" + order, Shape: 1, State: []byte("1"), Events: []eventstore.Event{encoded}})
	return err
}

// ground is a migrated database and a broker with the topics.
type ground struct {
	t      *testing.T
	db     *pgtest.DB
	broker *kafka.Embedded
}

func newGround(t *testing.T, d Definition) *ground {
	t.Helper()
	g := &ground{t: t, db: pgtest.New(t)}
	if err := d.Migrate(t.Context(), g.db.DSN); err != nil {
		t.Fatal(err)
	}
	g.broker = kafkatest.New(t, d.Topics()...)
	return g
}

func (g *ground) config() Config {
	return Config{DSN: g.db.DSN, Kafka: g.broker.Config("tests"), Member: "m1", Metrics: prometheus.NewRegistry()}
}

func (g *ground) start(d Definition) *Running {
	g.t.Helper()
	r, err := Start(g.t.Context(), d, g.config())
	if err != nil {
		g.t.Fatal(err)
	}
	g.t.Cleanup(func() { stop(r) })
	return r
}

func stop(r *Running) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	r.Stop(ctx)
}

func (g *ground) count(sql string, args ...any) int {
	g.t.Helper()
	var n int
	if err := g.db.Pool.QueryRow(context.Background(), sql, args...).Scan(&n); err != nil {
		g.t.Fatalf("%s: %v", sql, err)
	}
	return n
}

// sessions are those of the service, not of the test.
func (g *ground) sessions() int {
	return g.count("select count(*) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid() and application_name <> $1", g.t.Name())
}

func (g *ground) await(what string, ok func() bool) {
	g.t.Helper()
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	for !ok() {
		select {
		case <-look.C:
		case <-deadline.C:
			g.t.Fatalf("waited in vain for: %s", what)
		}
	}
}

// One declaration runs: seed, store, relay, operator and loop. At the stop each part still has what it stands on.
func TestAServiceRunsFromItsDeclaration(t *testing.T) {
	t.Parallel()
	d := definition()
	d.Seed = func(ctx context.Context, rt Runtime) error { return earn(ctx, rt.Store, "seed") }
	began := make(chan struct{})
	var last error
	d.Loops = []Loop{{Name: "loyalty.loop", Run: func(ctx context.Context, rt Runtime) error {
		if err := earn(ctx, rt.Store, "loop"); err != nil {
			return err
		}
		close(began)
		<-ctx.Done()
		last = earn(context.WithoutCancel(ctx), rt.Store, "end")
		return nil
	}}}
	g := newGround(t, d)
	r := g.start(d)
	g.await("what the seed and the loop said", func() bool { return g.count("select count(*) from heard") == 2 })
	<-began
	g.await("health", func() bool { return len(failing(r)) == 0 })
	stop(r)
	if last != nil || g.count("select count(*) from events") != 3 {
		t.Errorf("the loop could not write as it ended: %v", last)
	}
	g.await("the end of the sessions", func() bool { return g.sessions() == 0 }) // the server takes a moment
	if err := r.Runtime.Store.Pool().Ping(t.Context()); err == nil {
		t.Error("the pool is still open")
	}
	stop(r) // twice is fine
}

func TestThePoolHasFigures(t *testing.T) {
	t.Parallel()
	d := definition()
	g := newGround(t, d)
	registry := prometheus.NewRegistry()
	cfg := g.config()
	cfg.Metrics, cfg.MaxConns = registry, 5
	r, err := Start(t.Context(), d, cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer stop(r)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	at := slices.IndexFunc(families, func(f *dto.MetricFamily) bool { return f.GetName() == "feira_pgxpool_max_conns" })
	if at < 0 {
		t.Fatal("the pool has no figures")
	}
	sizes := map[string]float64{}
	for _, m := range families[at].GetMetric() {
		sizes[m.GetLabel()[0].GetValue()] = m.GetGauge().GetValue()
	}
	if want := map[string]float64{"store": 5, "operators": 2}; !maps.Equal(sizes, want) {
		t.Errorf("got pools of %v connections, want %v", sizes, want)
	}
}

// TestOperatorsDoNotWaitBehindRequests: with every connection for requests taken, what follows from events still does.
func TestOperatorsDoNotWaitBehindRequests(t *testing.T) {
	t.Parallel()
	d := definition()
	g := newGround(t, d)
	r := g.start(d)
	for range r.pool.Config().MaxConns {
		conn, err := r.pool.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Release()
	}
	if err := earn(t.Context(), r.Runtime.Store, "busy"); err != nil {
		t.Fatal(err)
	}
	g.await("the operator", func() bool { return g.count("select count(*) from heard") == 1 })
}

// A service may be started again in the process: its figures are then those of the last start.
func TestAServiceIsStartedAgainWithTheSameMetrics(t *testing.T) {
	t.Parallel()
	d := definition()
	g := newGround(t, d)
	cfg := g.config()
	for range 2 {
		r, err := Start(t.Context(), d, cfg)
		if err != nil {
			t.Fatal(err)
		}
		stop(r)
	}
}

func TestAFailedStartLeavesNothingRunning(t *testing.T) {
	t.Parallel()
	d := definition()
	broken := errors.New("no seed today")
	d.Seed = func(ctx context.Context, rt Runtime) error { return errors.Join(earn(ctx, rt.Store, "seed"), broken) }
	d.Loops = []Loop{{Name: "loyalty.loop", Run: func(context.Context, Runtime) error {
		t.Error("the loop was started")
		return nil
	}}}
	g := newGround(t, d)
	if _, err := Start(t.Context(), d, g.config()); !errors.Is(err, broken) || !strings.Contains(err.Error(), "start loyalty") {
		t.Errorf("got %v", err)
	}
	g.await("the end of the sessions", func() bool { return g.sessions() == 0 }) // the server takes a moment
	if n := g.count("select count(*) from checkpoints"); n != 0 {
		t.Errorf("an operator was started: %d checkpoints", n)
	}
	elsewhere := g.config()
	elsewhere.DSN = "postgres://nobody:nothing@127.0.0.1:1/nowhere"
	if _, err := Start(t.Context(), d, elsewhere); err == nil {
		t.Error("started without a database")
	}
}

// A connection that somebody keeps does not hold up the process.
func TestAStopIsBounded(t *testing.T) {
	t.Parallel()
	d := definition()
	d.Operators, d.Publishes = nil, events.Topic{}
	g := newGround(t, d)
	r := g.start(d)
	kept, err := r.Runtime.Store.Pool().Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	limit, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); r.Stop(limit) }()
	cancel()
	select {
	case <-ended:
	case <-time.After(patience):
		t.Error("the stop waits for a connection that is never given back")
	}
	kept.Release()
	g.await("the end of the sessions", func() bool { return g.sessions() == 0 })
}

func TestLoopsAreStartedAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var runs atomic.Int32
		r := &Running{Runtime: Runtime{Log: slog.New(slog.DiscardHandler)}}
		l := Loop{Name: "tests.loop", Run: func(ctx context.Context, _ Runtime) error {
			switch runs.Add(1) {
			case 1:
				return errors.New("a bad start")
			case 2:
				return nil // too early, too
			}
			<-ctx.Done()
			return ctx.Err()
		}}
		r.background(func(ctx context.Context) { r.loop(ctx, l) })
		time.Sleep(10 * time.Second) // of the test's own clock
		if n := runs.Load(); n != 3 {
			t.Errorf("the loop ran %d times, want 3", n)
		}
		r.Stop(t.Context())
		time.Sleep(10 * time.Second)
		if n := runs.Load(); n != 3 {
			t.Errorf("the loop ran after the stop: %d times", n)
		}
	})
}

func TestTopicsAreListedOnce(t *testing.T) {
	t.Parallel()
	d := definition()
	d.Operators = append(d.Operators, operator.Definition{Topics: []events.Topic{events.Orders, events.Loyalty, events.Orders}})
	if got := fmt.Sprint(names(d.Topics())); got != "[loyalty orders]" {
		t.Errorf("topics %s", got)
	}
	d.Publishes = events.Topic{}
	if got := fmt.Sprint(names(d.Topics())); got != "[loyalty orders]" {
		t.Errorf("topics %s", got)
	}
}

func names(topics []events.Topic) []string {
	list := make([]string, len(topics))
	for i, t := range topics {
		list[i] = t.Name
	}
	return list
}
