package fraud

import (
	"context"
	"fmt"
	"reflect"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/eventstore"
	"github.com/feira-shop/feira/shared/operator"
	"github.com/feira-shop/feira/shared/pg/pgtest"
	"github.com/feira-shop/feira/shared/stream"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// counter counts the statements of a connection.
type counter struct{ n atomic.Int64 }

func (c *counter) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	c.n.Add(1)
	return ctx
}
func (*counter) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

func (c *counter) TraceBatchStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchStartData) context.Context {
	return ctx
}
func (c *counter) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) { c.n.Add(1) }
func (*counter) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData)       {}

// running is the operator's handler with its partition claimed, on a database of its own.
type running struct {
	store   *eventstore.Store
	handler operator.Stateful
	counter *counter
	offset  int64
}

func run(t *testing.T, disorder time.Duration) *running {
	t.Helper()
	db := pgtest.New(t, eventstore.Migrations(), stream.Migrations())
	cfg, err := pgxpool.ParseConfig(db.DSN)
	if err != nil {
		t.Fatal(err)
	}
	r := &running{counter: &counter{}}
	cfg.ConnConfig.Tracer = r.counter
	pool, err := pgxpool.NewWithConfig(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	r.store = eventstore.New(pool, eventstore.Options{Service: "fraud", Registry: events.NewRegistry()})
	r.handler = cards(Config{Disorder: disorder}.defaults()).Handler(r.store).(operator.Stateful)
	if err := r.handler.Restore(t.Context(), pool, operator.Claim{Topic: events.Payments.Name}); err != nil {
		t.Fatal(err)
	}
	return r
}

// apply commits one batch and says how many statements it took.
func (r *running) apply(t *testing.T, batch ...events.Recorded) int64 {
	t.Helper()
	records := make([]operator.Record, len(batch))
	for i, b := range batch {
		r.offset++
		b.Type, b.ID = b.Event.EventType(), fmt.Sprint("event-", r.offset)
		records[i] = operator.Record{Recorded: b, Topic: events.Payments.Name, Offset: r.offset}
	}
	before := r.counter.n.Load()
	tx, err := r.store.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	if err := r.handler.Apply(t.Context(), tx, records); err != nil {
		t.Fatal(err)
	}
	if err := tx.Commit(t.Context(), "es_commit"); err != nil {
		t.Fatal(err)
	}
	r.handler.Settle(true)
	return r.counter.n.Load() - before
}

// Nothing is read from the database per event: a batch takes as many statements whatever its size.
func TestABatchTakesTheSameStatementsWhateverItsSize(t *testing.T) {
	t.Parallel()
	r := run(t, 5*time.Minute)
	var want int64
	for batch, size := range []int{1, 500, 3, 100} {
		var payments []events.Recorded
		for i := range size {
			payments = append(payments, onCard(i, fmt.Sprintf("p-%d-%d", batch, i), time.Duration(batch)*time.Second))
		}
		got := r.apply(t, payments...)
		if batch == 0 {
			want = got
		}
		if got != want {
			t.Errorf("%d payments took %d statements, one took %d", size, got, want)
		}
	}
	// begin, the deltas, what they free, the append, commit.
	if want != 5 {
		t.Errorf("a batch takes %d statements", want)
	}
}

// The service as it is wired: verdicts in streams of their own, whichever type, across a restart.
func TestVerdictsAcrossARestart(t *testing.T) {
	t.Parallel()
	r := run(t, time.Minute)
	r.apply(t, authorized("a", 0), authorized("b", 4999*time.Millisecond))
	again := cards(Config{Disorder: time.Minute}.defaults()).Handler(r.store).(operator.Stateful)
	if err := again.Restore(t.Context(), r.store.Pool(), operator.Claim{Topic: events.Payments.Name}); err != nil {
		t.Fatal(err)
	}
	r.handler = again
	r.apply(t, voided("a", 0), authorized("c", 9998*time.Millisecond), authorized("d", 15*time.Second), authorized("late", -46*time.Second))
	for payment, want := range map[string]events.Event{
		"a": events.PurchaseCleared{}, "b": events.PurchaseHeld{Reason: events.ReasonDuplicatePurchase, DuplicateOfPayment: "a", DuplicateOfOrder: "order-a"},
		"c":    events.PurchaseHeld{Reason: events.ReasonDuplicatePurchase, DuplicateOfPayment: "b", DuplicateOfOrder: "order-b"},
		"d":    events.PurchaseCleared{},
		"late": events.PurchaseHeld{Reason: events.ReasonFraud},
	} {
		history, err := r.store.History(t.Context(), Stream(payment), eventstore.Until{})
		if err != nil || len(history) != 1 {
			t.Fatalf("%d verdicts on %s, %v", len(history), payment, err)
		}
		got := history[0].Event
		if held, ok := got.(events.PurchaseHeld); ok {
			held.Verdict = events.Verdict{}
			if !reflect.DeepEqual(held, want) {
				t.Errorf("%s: %+v, want %+v", payment, held, want)
			}
		} else if fmt.Sprintf("%T", got) != fmt.Sprintf("%T", want) {
			t.Errorf("%s: %T, want %T", payment, got, want)
		}
	}
}
