package jobs

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/feira-shop/feira/shared/decider"
	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/eventstore"
	"github.com/feira-shop/feira/shared/pg"
	"github.com/feira-shop/feira/shared/pg/pgtest"
	"github.com/feira-shop/feira/shared/telemetry"
)

func TestMain(m *testing.M) {
	if dsn := os.Getenv(childDSN); dsn != "" {
		child(dsn) // this process is one of a test's that will be killed or frozen
		return
	}
	// These tests wait for timeouts and backoffs rather than compute, so more of them fit side by side.
	if err := flag.Set("test.parallel", "6"); err != nil {
		panic(err)
	}
	pgtest.Main(m)
}

// patience bounds what a test waits for on a loaded machine.
const patience = 30 * time.Second

// The aggregate of the tests: a charge is asked for, a job makes it, and its outcome is noted.
type (
	asked struct {
		Order string `json:"order"`
	}
	charged struct {
		Order   string `json:"order"`
		Receipt string `json:"receipt"`
	}
	charge struct {
		Asked   bool     `json:"asked"`
		Receipt []string `json:"receipts"`
	}

	ask struct{ Order string } // commands
	got struct{ Order, Receipt string }

	chargeJob struct {
		Order string `json:"order"`
	}
)

func (asked) EventType() string   { return "shop.feira.test.charge.asked.v1" }
func (charged) EventType() string { return "shop.feira.test.charge.charged.v1" }
func (e asked) EventKey() string  { return e.Order }
func (e charged) EventKey() string {
	return e.Order
}
func (chargeJob) Kind() string { return "test_charge" }

func charges() decider.Decider[charge] {
	return decider.Decider[charge]{
		Decide: func(s charge, cmd any) ([]events.Event, error) {
			switch c := cmd.(type) {
			case ask:
				return events.List(asked(c)), nil
			case got: // each outcome that comes through is seen
				return events.List(charged(c)), nil
			}
			return nil, decider.Unknown(cmd)
		},
		Evolve: func(s charge, e events.Event) charge {
			switch e := e.(type) {
			case asked:
				s.Asked = true
			case charged:
				s.Receipt = append(append([]string{}, s.Receipt...), e.Receipt)
			}
			return s
		},
		Shape: 1,
		Jobs: func(_ string, e events.Event) []eventstore.Job {
			if a, ok := e.(asked); ok {
				return []eventstore.Job{New(chargeJob(a))}
			}
			return nil
		},
	}
}

type do = func(ctx context.Context, args chargeJob) (any, error)

func spec(f do) Spec[chargeJob, charge] {
	return Spec[chargeJob, charge]{
		Decider: charges(),
		Stream:  func(a chargeJob) string { return "charge-" + a.Order },
		Do:      f,
	}
}

// receipt is a side effect that works at once.
func receipt(_ context.Context, a chargeJob) (any, error) {
	return got{Order: a.Order, Receipt: "r-" + a.Order}, nil
}

// bed is a database with a running store.
type bed struct {
	t       testing.TB
	db      *pgtest.DB
	store   *eventstore.Store
	metrics *prometheus.Registry
}

func newBed(tb testing.TB) *bed {
	tb.Helper()
	return newBedWith(tb, nil)
}

// newBedWith is a bed whose service traces.
func newBedWith(tb testing.TB, tracer *telemetry.Tracer) *bed {
	tb.Helper()
	db := pgtest.New(tb, eventstore.Migrations())
	must(tb, Migrate(tb.Context(), db.DSN))
	return &bed{t: tb, db: db, store: startStore(tb, db.Pool, tracer), metrics: prometheus.NewRegistry()}
}

func startStore(tb testing.TB, pool *pgxpool.Pool, tracer *telemetry.Tracer) *eventstore.Store {
	tb.Helper()
	store := eventstore.New(pool, eventstore.Options{Service: "charges", Registry: events.NewRegistry(asked{}, charged{}), Tracer: tracer})
	ctx, stop := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := store.Run(ctx); err != nil {
			tb.Errorf("store: %v", err)
		}
	})
	tb.Cleanup(func() { stop(); wg.Wait() })
	return store
}

// start runs a client whose end the test waits for.
func (b *bed) start(definitions ...Definition) *Client {
	b.t.Helper()
	return b.startWith(nil, definitions...)
}

// startWith is start with a log.
func (b *bed) startWith(log *slog.Logger, definitions ...Definition) *Client {
	b.t.Helper()
	c, err := Start(b.t.Context(), definitions, Options{Store: b.store, Log: log, Metrics: b.metrics, Member: "test"})
	must(b.t, err)
	b.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := c.Stop(ctx); err != nil {
			b.t.Errorf("stop: %v", err)
		}
	})
	return c
}

// ask inserts a job, with the event that calls for it.
func (b *bed) ask(order string) {
	b.t.Helper()
	_, err := decider.Handle(b.t.Context(), b.store, charges(), "charge-"+order, ask{Order: order}, events.Meta{})
	must(b.t, err)
}

// settled waits until every job is completed.
func (b *bed) settled() {
	b.t.Helper()
	b.until("all jobs are completed", "select count(*) > 0 and bool_and(state = 'completed') from river_job")
}

// until polls for what only the database shows.
func (b *bed) until(what, sql string, args ...any) {
	b.t.Helper()
	deadline := time.Now().Add(patience)
	for !one[bool](b.t, b.db.Pool, sql, args...) {
		if time.Now().After(deadline) {
			b.t.Fatalf("never seen: %s; jobs are %s", what, b.jobs())
		}
		<-time.After(5 * time.Millisecond)
	}
}

func (b *bed) jobs() string {
	return one[string](b.t, b.db.Pool, "select coalesce(json_agg(j)::text, 'none') from river_job j")
}

func (b *bed) receipts(order string) []string {
	b.t.Helper()
	now, err := decider.Load(b.t.Context(), b.store, charges(), "charge-"+order)
	must(b.t, err)
	return now.State.Receipt
}

// counted is the number of attempts that ended so.
func (b *bed) counted(outcome string) float64 {
	b.t.Helper()
	return b.metric("feira_job_attempts_total", outcome)
}

// metric sums a metric over those of its series that have the label value; "" takes all.
func (b *bed) metric(name, label string) float64 {
	b.t.Helper()
	families, err := b.metrics.Gather()
	must(b.t, err)
	var sum float64
	for _, f := range families {
		for _, m := range f.GetMetric() {
			match := label == ""
			for _, l := range m.GetLabel() {
				match = match || l.GetValue() == label
			}
			if f.GetName() == name && match {
				sum += m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
			}
		}
	}
	return sum
}

func one[V any](tb testing.TB, pool *pgxpool.Pool, sql string, args ...any) V {
	tb.Helper()
	var v V
	if err := pool.QueryRow(context.Background(), sql, args...).Scan(&v); err != nil {
		tb.Fatalf("%s: %v", sql, err)
	}
	return v
}

func execSQL(tb testing.TB, pool *pgxpool.Pool, sql string, args ...any) int64 {
	tb.Helper()
	tag, err := pool.Exec(context.Background(), sql, args...)
	must(tb, err)
	return tag.RowsAffected()
}

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

// receive waits for a signal of a worker.
func receive[V any](tb testing.TB, what string, c <-chan V) V {
	tb.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(patience):
		tb.Fatalf("never seen: %s", what)
		panic(fmt.Sprint("unreachable: ", what))
	}
}

// openPool is another process's way to the database.
func openPool(tb testing.TB, dsn string) *pgxpool.Pool {
	tb.Helper()
	pool, err := pg.Open(tb.Context(), dsn, pg.PoolOptions{Name: "outside", MaxConns: 2})
	must(tb, err)
	tb.Cleanup(pool.Close)
	return pool
}
