package eventstore_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/eventstore"
	"github.com/feira-shop/feira/shared/pg"
	"github.com/feira-shop/feira/shared/pg/pgtest"
)

// everything uses each statement of the store once.
func everything(t *testing.T, s *eventstore.Store, stream string, version int64) {
	t.Helper()
	ctx := t.Context()
	_, err := s.Append(ctx, counted(t, stream, version))
	must(t, err)
	_, err = s.Append(ctx, counted(t, stream, version)) // a conflict, which looks for ids
	if err == nil {
		t.Error("a second append at the same version went through")
	}
	must(t, s.Within(ctx, func(ctx context.Context, tx *eventstore.Tx) error {
		loaded, err := tx.Load(ctx, []string{stream, stream + "-own"})
		if err != nil {
			return err
		}
		if _, err := tx.History(ctx, stream); err != nil {
			return err
		}
		tx.Append(counted(t, stream, loaded[stream].Version))
		return nil
	}))
	_, err = s.Load(ctx, stream)
	must(t, err)
	_, err = s.History(ctx, stream, eventstore.Until{Version: 1})
	must(t, err)
	enough := fmt.Errorf("enough")
	_ = s.Each(ctx, 0, func(events.Recorded) error { return enough })
	_ = s.EventsOf(ctx, 0, []string{(Counted{}).EventType()}, func(events.Recorded) error { return enough })
}

// smallParts turns an empty store's one part into a small one.
func smallParts(tb testing.TB, pool *pgxpool.Pool, size int64) {
	tb.Helper()
	_, err := pool.Exec(tb.Context(), "drop table events_1")
	must(tb, err)
	one[int](tb, pool, "select es_make_parts($1)", size)
}

// TestPlansAndDeadRows fills a fresh store through connections whose statements were prepared while it was empty and
// had one part: no statement scans a table, and the parts of the table of events have no dead rows after 20,000 appends.
func TestPlansAndDeadRows(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t, eventstore.Migrations())
	smallParts(t, db.Pool, 4000)
	pool, err := pg.Open(t.Context(), db.DSN, pg.PoolOptions{Name: "store", MaxConns: 3})
	must(t, err)
	defer pool.Close()
	s := eventstore.New(pool, eventstore.Options{Service: "counter", PartSize: 4000})
	stop := run(t, s)
	defer stop()
	_, unwatch := s.Watch("counter-0")
	defer unwatch()
	for i := range 20 {
		everything(t, s, fmt.Sprintf("early-%d", i), 0)
	}
	const appends, callers = 20_000, 64
	var working sync.WaitGroup
	for c := range callers {
		working.Go(func() {
			for i := range appends / callers {
				stream := fmt.Sprintf("counter-%d", i%100*callers+c)
				if _, err := s.Append(context.Background(), counted(t, stream, int64(i/100))); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	working.Wait()
	for i := range 20 {
		everything(t, s, fmt.Sprintf("counter-%d", i), 4)
	}
	unwatch()
	stop()
	pool.Close() // sessions report their statistics when they end
	until(t, "all sessions of the store have ended", func() bool {
		return one[int](t, db.Pool, "select count(*) from pg_stat_activity where application_name = 'store' and datname = current_database()") == 0
	})
	stat := func(column, table string) int {
		return one[int](t, db.Pool, fmt.Sprintf(`select sum(coalesce(%s, 0)) from pg_stat_user_tables
			where coalesce(pg_partition_root(relid), relid) = $1::regclass`, column), table)
	}
	parts := one[int](t, db.Pool, "select count(*) from es_parts()")
	if parts < 5 {
		t.Errorf("there are %d parts", parts)
	}
	builds := map[string]int{"events": 2 * parts} // the server counts the reading of an empty table to make an index
	for _, table := range []string{"events", "streams"} {
		if scans, byIndex := stat("seq_scan", table)-builds[table], stat("idx_scan", table); scans > 0 || byIndex == 0 {
			t.Errorf("%s: %d sequential scans, %d by index", table, scans, byIndex)
		}
	}
	if dead, inserted := stat("n_dead_tup", "events"), stat("n_tup_ins", "events"); dead > 0 || inserted < appends {
		t.Errorf("events: %d dead rows of %d inserted", dead, inserted)
	}
}

func TestMetrics(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t, eventstore.Migrations())
	reg := prometheus.NewRegistry()
	s := eventstore.New(db.Pool, eventstore.Options{Service: "counter", Metrics: reg})
	run(t, s)
	_, err := s.Append(t.Context(), counted(t, "counter-1", 0))
	must(t, err)
	_, err = s.Append(t.Context(), counted(t, "counter-1", 0))
	if err == nil {
		t.Fatal("no conflict")
	}
	families, err := reg.Gather()
	must(t, err)
	got := map[string]float64{}
	for _, f := range families {
		m := f.GetMetric()[0]
		got[f.GetName()] = m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
	}
	want := map[string]float64{
		"feira_store_append_batch_size": 2, "feira_store_flush_duration_seconds": 2,
		"feira_store_append_conflicts_total": 1, "feira_store_append_retries_total": 0,
		"feira_store_append_side_lane_total": 0, "feira_store_append_unknown_total": 0,
		"feira_store_append_queue_length": 0, "feira_store_transaction_retries_total": 0,
	}
	for name, value := range want {
		if v, ok := got[name]; !ok || v != value {
			t.Errorf("%s is %v (registered: %t), want %v", name, v, ok, value)
		}
	}
}
