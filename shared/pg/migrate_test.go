package pg

import (
	"context"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"
)

// files is a set whose migrations are the given statements.
func files(name string, statements ...string) Set {
	fsys := fstest.MapFS{}
	for i, sql := range statements {
		fsys["0000"+string(rune('1'+i))+"_step.sql"] = &fstest.MapFile{Data: []byte("-- +goose Up\n" + sql + "\n")}
	}
	return Set{Name: name, FS: fsys}
}

func TestEachSetHasItsOwnVersion(t *testing.T) {
	t.Parallel()
	_, dsn := database(t, "sets")
	store := files("store", "create table events (n int);", "alter table events add m int;")
	own := files("own", "create table notes (n int);")
	for range 2 { // the second time there is nothing to do
		if err := Migrate(t.Context(), dsn, store, own); err != nil {
			t.Fatal(err)
		}
	}
	own.FS.(fstest.MapFS)["00002_more.sql"] = &fstest.MapFile{Data: []byte("-- +goose Up\nalter table notes add m int;\n")}
	if err := Migrate(t.Context(), dsn, store, own); err != nil {
		t.Fatal(err)
	}
	for table, want := range map[string]int{"goose_store": 2, "goose_own": 2} {
		if got := count(t, dsn, "select max(version_id) from "+table); got != want {
			t.Errorf("%s is at %d, expected %d", table, got, want)
		}
	}
	if n := count(t, dsn, "select count(m) from notes"); n != 0 {
		t.Error("the later migration was not applied")
	}
}

func TestConcurrentMigrationsWaitForEachOther(t *testing.T) {
	t.Parallel()
	_, dsn := database(t, "together")
	// Without the lock both would create the table, or the version table.
	set := files("slow", "select pg_sleep(0.2); create table once (n int);", "insert into once values (1);")
	var all sync.WaitGroup
	for range 5 {
		all.Go(func() {
			if err := Migrate(t.Context(), dsn, set); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if n := count(t, dsn, "select count(*) from once"); n != 1 {
		t.Errorf("the migration ran %d times", n)
	}
}

func TestAMigrationMayTakeLong(t *testing.T) {
	t.Parallel()
	_, dsn := database(t, "long")
	set := files("limits", "create table limits as select current_setting('statement_timeout') as statement,"+
		" current_setting('lock_timeout') as lock;")
	if err := Migrate(t.Context(), dsn, set); err != nil {
		t.Fatal(err)
	}
	if n := count(t, dsn, "select count(*) from limits where statement = '0' and lock = '5s'"); n != 1 {
		t.Error("a migration has the time limits of a service")
	}
}

func TestAFailedMigrationIsNamed(t *testing.T) {
	t.Parallel()
	_, dsn := database(t, "failed")
	err := Migrate(t.Context(), dsn, files("broken", "create table a (n int); create table a (n int);"))
	if err == nil || !strings.Contains(err.Error(), "migrate broken") || !strings.Contains(err.Error(), "already exists") {
		t.Errorf("got %v", err)
	}
	if n := count(t, dsn, "select count(*) from pg_class where relname = 'a'"); n != 0 {
		t.Error("half of the migration stayed")
	}
	if err := Migrate(t.Context(), dsn, Set{Name: "empty", FS: fstest.MapFS{}}); err == nil ||
		!strings.Contains(err.Error(), "migrate empty: the set has no migrations") {
		t.Errorf("got %v", err)
	}
	if err := Migrate(t.Context(), "postgres://%zz"); err == nil {
		t.Error("an unreadable address was taken")
	}
}

func TestAMigrationThatIsHeldUpSaysSo(t *testing.T) {
	t.Parallel()
	_, dsn := database(t, "heldup")
	holder, err := Connect(t.Context(), dsn, "holder", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = holder.Close(context.Background()) }()
	if _, err := holder.Exec(t.Context(), "select pg_advisory_lock($1)", int64(migrationLock)); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second) // enough to connect on a busy machine
	defer cancel()
	err = Migrate(ctx, dsn, files("any", "select 1;"))
	if err == nil || !strings.Contains(err.Error(), "another process is migrating") {
		t.Errorf("got %v", err)
	}
}
