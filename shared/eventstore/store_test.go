package eventstore_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/eventstore"
	"github.com/feira-shop/feira/shared/faulttest"
	"github.com/feira-shop/feira/shared/pg"
	"github.com/feira-shop/feira/shared/pg/pgtest"
)

func TestMain(m *testing.M) {
	if os.Getenv(frozenDSN) == "" {
		pgtest.Main(m)
		return
	}
	if err := runFrozen(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// Counted is a private event.
type Counted struct {
	N    int    `json:"n"`
	Note string `json:"note,omitempty"`
}

func (Counted) EventType() string { return "shop.feira.test.counted.v1" }
func (Counted) EventKey() string  { return "key" }

// Stranger is declared nowhere.
type Stranger struct{}

func (Stranger) EventType() string { return "shop.feira.test.stranger.v1" }
func (Stranger) EventKey() string  { return "" }

func encode(tb testing.TB, e events.Event) eventstore.Event {
	tb.Helper()
	encoded, err := eventstore.Encode(events.Meta{ID: uuid.NewString(), Time: time.Now().UTC()}, e)
	if err != nil {
		tb.Fatal(err)
	}
	return encoded
}

// counted is an append of one event, of which the state is the version.
func counted(tb testing.TB, stream string, expected int64) eventstore.Append {
	tb.Helper()
	return eventstore.Append{
		Stream: stream, Expected: expected, Shape: 1, State: fmt.Appendf(nil, `{"n":%d}`, expected+1),
		Events: []eventstore.Event{encode(tb, Counted{N: int(expected) + 1})},
	}
}

// start runs a store over pool until the test ends.
func start(tb testing.TB, pool *pgxpool.Pool) *eventstore.Store {
	tb.Helper()
	s := eventstore.New(pool, eventstore.Options{Service: "counter", Registry: events.NewRegistry(Counted{})})
	run(tb, s)
	return s
}

// run runs a store; the returned function stops it and waits for its end.
func run(tb testing.TB, s *eventstore.Store) (stop func()) {
	tb.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	var stopped bool
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-done; err != nil {
			tb.Errorf("Run: %v", err)
		}
	}
	tb.Cleanup(stop)
	return stop
}

func open(tb testing.TB, dsn string, conns int32) *pgxpool.Pool {
	tb.Helper()
	pool, err := pg.Open(context.Background(), dsn, pg.PoolOptions{Name: tb.Name(), MaxConns: conns})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(pool.Close)
	return pool
}

// one reads a single value.
func one[V any](tb testing.TB, pool *pgxpool.Pool, sql string, args ...any) V {
	tb.Helper()
	var v V
	if err := pool.QueryRow(context.Background(), sql, args...).Scan(&v); err != nil {
		tb.Fatalf("%s: %v", sql, err)
	}
	return v
}

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

func TestAppendLoadHistory(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t, eventstore.Migrations())
	s := start(t, db.Pool)
	ctx := t.Context()

	empty, err := s.Load(ctx, "counter-1")
	must(t, err)
	if empty.Version != 0 || empty.State != nil {
		t.Fatalf("a stream that was never written: %+v", empty)
	}
	for v := range int64(5) {
		r, err := s.Append(ctx, counted(t, "counter-1", v))
		must(t, err)
		if r.Version != v+1 {
			t.Fatalf("version %d, want %d", r.Version, v+1)
		}
	}
	got, err := s.Load(ctx, "counter-1")
	must(t, err)
	if got.Version != 5 || got.Shape != 1 || string(got.State) != `{"n":5}` {
		t.Fatalf("loaded %+v", got)
	}

	stranger := counted(t, "counter-1", 5)
	stranger.Events = append(stranger.Events, encode(t, Stranger{}))
	_, err = s.Append(ctx, stranger)
	must(t, err)
	history, err := s.History(ctx, "counter-1", eventstore.Until{})
	must(t, err)
	if len(history) != 7 {
		t.Fatalf("%d events, want 7", len(history))
	}
	for i, r := range history[:6] {
		if e, ok := r.Event.(Counted); !ok || e.N != i+1 || r.Source != "/feira/counter" || r.Subject != "counter-1" || r.ID == "" {
			t.Fatalf("event %d: %+v", i+1, r)
		}
	}
	if history[6].Event != nil || history[6].Type != (Stranger{}).EventType() {
		t.Fatalf("an unknown type: %+v", history[6])
	}

	at3, err := s.History(ctx, "counter-1", eventstore.Until{Version: 3})
	must(t, err)
	before4, err := s.History(ctx, "counter-1", eventstore.Until{Time: history[3].RecordedAt.Add(-time.Microsecond)})
	must(t, err)
	if len(at3) != 3 || len(before4) != 3 {
		t.Fatalf("at version 3: %d events; before the fourth: %d", len(at3), len(before4))
	}
}

func TestBytesAreKept(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t, eventstore.Migrations())
	s := start(t, db.Pool)
	a := counted(t, "counter-1", 0)
	a.Events[0].Data = json.RawMessage(`{ "n":1,  "note":"<\u00e7é\u0000>", "n":1 }`)
	_, err := s.Append(t.Context(), a)
	must(t, err)
	history, err := s.History(t.Context(), "counter-1", eventstore.Until{})
	must(t, err)
	if string(history[0].Data) != string(a.Events[0].Data) {
		t.Fatalf("stored %s, appended %s", history[0].Data, a.Events[0].Data)
	}
}

func TestConflictAndRepeat(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t, eventstore.Migrations())
	s := start(t, db.Pool)
	ctx := t.Context()
	first := counted(t, "counter-1", 0)
	_, err := s.Append(ctx, first)
	must(t, err)

	for _, expected := range []int64{0, 2} {
		_, err = s.Append(ctx, counted(t, "counter-1", expected))
		var conflict *eventstore.ConflictError
		if !errors.As(err, &conflict) || *conflict != (eventstore.ConflictError{Stream: "counter-1", Expected: expected, Actual: 1}) {
			t.Fatalf("expected %d: %v", expected, err)
		}
	}
	_, err = s.Append(ctx, counted(t, "counter-absent", 3))
	var conflict *eventstore.ConflictError
	if !errors.As(err, &conflict) || conflict.Actual != 0 {
		t.Fatalf("an absent stream: %v", err)
	}

	_, err = s.Append(ctx, counted(t, "counter-1", 1))
	must(t, err)
	r, err := s.Append(ctx, first) // the same ids again, as after ErrUnknown
	must(t, err)
	if n := one[int](t, db.Pool, "select count(*) from events"); r.Version != 1 || n != 2 {
		t.Fatalf("repeated append: version %d, %d events", r.Version, n)
	}
}

func TestFaultRefusedWhenAppended(t *testing.T) {
	t.Parallel()
	faulttest.Begin(t, faulttest.Plan{Name: "An event that is too large",
		Does: "appends an event that no broker would take, and requests that no store can write: each is refused by name, nothing is written"})
	db := pgtest.New(t, eventstore.Migrations())
	s := start(t, db.Pool)
	large := counted(t, "counter-1", 0)
	large.Events[0] = encode(t, Counted{Note: strings.Repeat("x", eventstore.MaxEventBytes)})

	_, err := s.Append(t.Context(), large)
	var tooLarge *eventstore.TooLargeError
	if !errors.As(err, &tooLarge) || tooLarge.Type != (Counted{}).EventType() {
		t.Fatalf("append: %v", err)
	}
	err = s.Within(t.Context(), func(_ context.Context, tx *eventstore.Tx) error {
		tx.Append(large)
		return nil
	})
	if !errors.As(err, &tooLarge) {
		t.Fatalf("within: %v", err)
	}
	for name, a := range map[string]eventstore.Append{
		"no stream":     {Events: large.Events},
		"no state":      {Stream: "counter-1", Events: counted(t, "counter-1", 0).Events},
		"no id":         {Stream: "counter-1", State: []byte("{}"), Events: []eventstore.Event{{Type: "x", Data: []byte("1"), Meta: []byte("{}")}}},
		"only jobs":     {Stream: "counter-1", Jobs: []eventstore.Job{{Kind: "charge", Args: []byte("{}")}}},
		"job of nobody": {Stream: "counter-1", Jobs: []eventstore.Job{{}}},
	} {
		var invalid *eventstore.InvalidError
		if _, err := s.Append(t.Context(), a); !errors.As(err, &invalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if n := one[int](t, db.Pool, "select count(*) from streams"); n != 0 {
		t.Fatalf("%d streams were left behind", n)
	}
}

func TestEachInPositionOrder(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t, eventstore.Migrations())
	s := start(t, db.Pool)
	const n = 2500 // more than two pages
	err := s.Within(t.Context(), func(_ context.Context, tx *eventstore.Tx) error {
		for i := range n {
			a := counted(t, fmt.Sprintf("counter-%d", i), 0)
			if i%100 == 0 {
				a.Events = append(a.Events, encode(t, Stranger{}))
			}
			tx.Append(a)
		}
		return nil
	})
	must(t, err)
	var count, last int64
	must(t, s.Each(t.Context(), 0, func(r events.Recorded) error {
		if r.Sequence <= last {
			return fmt.Errorf("position %d after %d", r.Sequence, last)
		}
		last = r.Sequence
		count++
		return nil
	}))
	if count != n+n/100 {
		t.Fatalf("%d events, want %d", count, n+n/100)
	}
	count = 0
	must(t, s.EventsOf(t.Context(), last/2, []string{(Stranger{}).EventType()}, func(r events.Recorded) error {
		count++
		if r.Type != (Stranger{}).EventType() || r.Sequence <= last/2 {
			return fmt.Errorf("not asked for: %s at %d", r.Type, r.Sequence)
		}
		return nil
	}))
	if count == 0 || count > n/100/2+1 {
		t.Fatalf("%d strangers in the second half", count)
	}
	stop := errors.New("enough")
	if err := s.Each(t.Context(), 0, func(events.Recorded) error { return stop }); !errors.Is(err, stop) {
		t.Fatalf("the error of fn: %v", err)
	}
}
