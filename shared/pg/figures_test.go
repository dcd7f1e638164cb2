package pg

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// read gives what a scrape sees: names, with the table in braces where there is one.
func read(t *testing.T, f *Figures) map[string]float64 {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(f)
	families, err := registry.Gather()
	if err != nil {
		t.Fatalf("the scrape failed: %v", err)
	}
	values := map[string]float64{}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			values[named(family.GetName(), m)] = m.GetGauge().GetValue() + m.GetCounter().GetValue()
		}
	}
	return values
}

func named(name string, m *dto.Metric) string {
	for _, l := range m.GetLabel() {
		name += "{" + l.GetValue() + "}"
	}
	return name
}

func TestFiguresOfADatabase(t *testing.T) {
	t.Parallel()
	_, dsn := database(t, "figures")
	pool := openPool(t, dsn, PoolOptions{Name: "figures", MaxConns: 2})
	for _, sql := range []string{"create table things (n int)", "insert into things select generate_series(1, 1000)", "analyze things"} {
		if _, err := pool.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	f := NewFigures(pool)
	clock := time.Now().Add(-time.Hour) // an hour behind the server's
	f.now = func() time.Time { return clock }
	first := read(t, f)
	if len(first) != 1+len(databaseFigures)+2 {
		t.Errorf("other figures than expected: %v", first)
	}
	for _, name := range []string{"up", "size_bytes", "connections", "commits_total", "blocks_hit_total", "wal_bytes_total", "live_rows{things}"} {
		if first["feira_postgres_"+name] <= 0 {
			t.Errorf("%s is %v", name, first["feira_postgres_"+name])
		}
	}
	if skew := first["feira_postgres_clock_skew_seconds"]; skew > -3600 || skew < -3600-patience.Seconds() {
		t.Errorf("a clock that is an hour behind shows a skew of %v s", skew)
	}

	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), "select pg_sleep(0.05)"); err != nil {
		t.Fatal(err)
	}
	clock = clock.Add(figuresEvery - time.Millisecond)
	if v := read(t, f)["feira_postgres_oldest_transaction_seconds"]; v != 0 {
		t.Errorf("the server was asked again before its time: %v", v)
	}
	clock = clock.Add(time.Millisecond)
	if v := read(t, f)["feira_postgres_oldest_transaction_seconds"]; v < 0.05 || v > patience.Seconds() {
		t.Errorf("the open transaction has an age of %v s", v)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// A scrape goes well, and soon, when there is no free connection or no database.
func TestFiguresNeverFailAScrape(t *testing.T) {
	t.Parallel()
	_, dsn := database(t, "exhausted")
	pool := openPool(t, dsn, PoolOptions{Name: "exhausted", MaxConns: 1})
	f := NewFigures(pool)
	clock := time.Now()
	f.now = func() time.Time { clock = clock.Add(figuresEvery); return clock }
	if v := read(t, f); v["feira_postgres_up"] != 1 {
		t.Fatalf("no figures: %v", v)
	}
	only, err := pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	expectDown(t, f)
	only.Release()
	if v := read(t, f); v["feira_postgres_up"] != 1 || len(v) < len(databaseFigures) {
		t.Errorf("no figures once there was a connection again: %v", v)
	}
	pool.Close()
	expectDown(t, f)
}

func expectDown(t *testing.T, f *Figures) {
	t.Helper()
	begun := time.Now()
	v := read(t, f)
	if up, there := v["feira_postgres_up"]; !there || up != 0 || len(v) != 1 {
		t.Errorf("old figures are shown as new ones: %v", v)
	}
	if took := time.Since(begun); took > 10*figuresWithin {
		t.Errorf("the scrape took %s", took)
	}
}
