package pgtest_test

import (
	"testing"
	"testing/fstest"
	"time"

	"github.com/feira-shop/feira/shared/pg"
	"github.com/feira-shop/feira/shared/pg/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

func set(name, sql string) pg.Set {
	return pg.Set{Name: name, FS: fstest.MapFS{"00001_" + name + ".sql": {Data: []byte("-- +goose Up\n" + sql + "\n")}}}
}

func TestEachTestHasItsOwnDatabase(t *testing.T) {
	t.Parallel()
	notes := set("notes", "create table notes (id int primary key);")
	first, second := pgtest.New(t, notes), pgtest.New(t, notes)
	if _, err := first.Pool.Exec(t.Context(), "insert into notes values (1)"); err != nil {
		t.Fatal(err)
	}
	var rows int
	if err := second.Pool.QueryRow(t.Context(), "select count(*) from notes").Scan(&rows); err != nil {
		t.Fatal(err)
	}
	if rows != 0 {
		t.Errorf("the second database has %d rows of the first", rows)
	}
}

func TestACopyIsFast(t *testing.T) {
	notes := set("fast", "create table notes (id int primary key);")
	pgtest.New(t, notes)
	best := time.Hour
	for range 10 {
		began := time.Now()
		pgtest.New(t, notes)
		took := time.Since(began)
		t.Log(took)
		best = min(best, took)
	}
	if best > 50*time.Millisecond {
		t.Errorf("a copy took %v at best", best)
	}
}
