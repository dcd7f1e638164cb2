package faulttest_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/feira-shop/feira/shared/faulttest"
	"github.com/feira-shop/feira/shared/pg/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

func TestARunHasASizeASeedAndAReport(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("FEIRA_FAULTS", "0.1")
	t.Setenv("FEIRA_FAULTS_SEED", "7")
	t.Setenv("FEIRA_FAULTS_REPORT", dir)
	var first []int
	for range 2 {
		t.Run("run", func(t *testing.T) {
			r := faulttest.Begin(t, faulttest.Plan{Number: 2, Name: "Crash", Does: "kills"})
			if n := r.Times(3, 50); n != 5 {
				t.Errorf("a tenth of 50 is %d", n)
			}
			if n := r.Times(3, 4); n != 1 {
				t.Errorf("a tenth of 4 is %d, want at least one", n)
			}
			if d := r.For(time.Second, 30*time.Second); d != 3*time.Second {
				t.Errorf("a tenth of 30 s is %s", d)
			}
			drawn := []int{r.Dice().IntN(1e9), r.Dice().IntN(1e9)}
			if first == nil {
				first = drawn
			} else if first[0] != drawn[0] || first[1] != drawn[1] || drawn[0] == drawn[1] {
				t.Errorf("one seed gave %v, then %v", first, drawn)
			}
			r.Count("kills", 2)
			r.Count("kills", 3)
			r.Found("takeover", "3 s")
		})
	}
	raw, err := os.ReadFile(filepath.Join(dir, t.Name()+".run.json"))
	if err != nil {
		t.Fatal(err)
	}
	var got faulttest.Report
	if err := json.Unmarshal(raw, &got); err != nil {
		t.Fatal(err)
	}
	want := []faulttest.Figure{{What: "kills", Value: "5"}, {What: "takeover", Value: "3 s"}}
	if !got.Passed || got.Seed != 7 || got.Scale != 0.1 || len(got.Figures) != 2 || got.Figures[0] != want[0] || got.Figures[1] != want[1] {
		t.Errorf("the report is %s", raw)
	}
}

func TestANetworkCanBeBroken(t *testing.T) {
	t.Parallel()
	network, dsn := faulttest.BeforePostgres(t, pgtest.New(t).DSN)
	connect := func() (*pgx.Conn, error) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		return pgx.Connect(ctx, dsn)
	}
	// ask asks the server something within d.
	ask := func(c *pgx.Conn, d time.Duration) (time.Duration, error) {
		ctx, cancel := context.WithTimeout(t.Context(), d)
		defer cancel()
		began := time.Now()
		_, err := c.Exec(ctx, "select 1")
		return time.Since(began), err
	}
	must := func() *pgx.Conn {
		t.Helper()
		c, err := connect()
		if err == nil {
			_, err = ask(c, 10*time.Second)
		}
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close(context.Background()) })
		return c
	}

	c := must()
	network.Cut()
	if _, err := ask(c, 10*time.Second); err == nil {
		t.Error("a connection outlived the cut")
	}
	network.Down()
	if _, err := connect(); err == nil {
		t.Error("a network that is down lets somebody through")
	}
	network.Up()
	c = must()
	network.Slow(300 * time.Millisecond)
	if took, err := ask(c, 10*time.Second); err != nil || took < 300*time.Millisecond {
		t.Errorf("an answer that is delayed by 300 ms came after %s: %v", took, err)
	}
	network.Heal()
	c = must()
	network.Hang()
	if _, err := ask(c, 300*time.Millisecond); err == nil {
		t.Error("an answer came through a network that hangs")
	}
	network.Heal()
	must()
}
