package relay

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/eventstore"
	"github.com/feira-shop/feira/shared/faulttest"
	"github.com/feira-shop/feira/shared/pg"
	"github.com/feira-shop/feira/shared/pg/pgtest"
)

// A dump is restored into another server, while the log is what it was.
func TestFaultRestoredDump(t *testing.T) {
	t.Parallel()
	run := faulttest.Begin(t, faulttest.Plan{Name: "Restored dump",
		Does: "restores a dump of the store into a new server under a running log: of an earlier state, the relay stops by name before it publishes; of the same state, it goes on"})
	server := newServer(t)
	for name, stale := range map[string]bool{"earlier": true, "clean": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newEnv(t, events.Orders)
			e.append(placed, keys(60)...)
			_, stop := e.start()
			e.drained()
			if stale {
				restore := e.dumpTo(t, run)
				e.append(placed, keys(41)...)
				e.drained()
				stop()
				e.moveTo(t, server, name, restore)
				e.append(placed, keys(50)...) // positions that the log knows with other ids
				e.stopsByName(t)
				return
			}
			stop()
			e.append(placed, keys(40)...) // not published yet
			e.moveTo(t, server, name, e.dumpTo(t, run))
			if _, err := e.store(2).Append(t.Context(), ordered("order-after", 0, 3)); err != nil {
				t.Error(err)
			}
			e.start()
			e.drained()
			if n := e.check(); n != 0 || e.ends() != 103 {
				t.Errorf("%d records, %d of them repeated; expected 103 and none", e.ends(), n)
			}
		})
	}
}

func (e *env) stopsByName(t *testing.T) {
	t.Helper()
	before, cursor := e.ends(), e.cursor()
	r, stop := e.start()
	defer stop()
	e.until("the relay has stopped", func() bool { return r.Health() != nil || e.cursor() != cursor })
	var restored *StoreRestoredError
	if !errors.As(r.Health(), &restored) || restored.Position <= 60 || restored.Position > 101 || restored.Was == restored.Is {
		t.Errorf("got %v", r.Health())
	}
	if e.ends() != before {
		t.Errorf("published %d records after the restore", e.ends()-before)
	}
}

// newServer is another Postgres than that of the tests' databases.
func newServer(t *testing.T) *pg.Server {
	t.Helper()
	dir, err := os.MkdirTemp("", "feira-restore-")
	if err == nil {
		err = os.Chmod(dir, 0o755) // for Postgres' account
	}
	if err != nil {
		t.Fatal(err)
	}
	server, err := pg.Start(t.Context(), pg.Options{Dir: dir, NoSync: true, Temporary: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
	})
	return server
}

// moveTo restores into a database of the server, which is the store's from then on.
func (e *env) moveTo(t *testing.T, server *pg.Server, name string, restore func(dsn string)) {
	t.Helper()
	if err := server.CreateDatabase(t.Context(), name); err != nil {
		t.Fatal(err)
	}
	dsn := server.DSN(name)
	restore(dsn)
	pool, err := pg.Open(t.Context(), dsn, pg.PoolOptions{Name: "restored"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	e.db = &pgtest.DB{DSN: dsn, Pool: pool}
}

// dumpTo dumps the store as it is; the function restores it. Where the machine has a Postgres without pg_dump, the
// tables are copied.
func (e *env) dumpTo(t *testing.T, run *faulttest.Run) (restore func(dsn string)) {
	t.Helper()
	dump, back := program("pg_dump"), program("pg_restore")
	if dump == "" || back == "" {
		run.Found("dumped by", "COPY: there is no pg_dump on this machine")
		return e.copyTo(t)
	}
	run.Found("dumped by", "pg_dump")
	file := filepath.Join(t.TempDir(), "store.dump")
	do := func(name string, args ...string) {
		t.Helper()
		if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", filepath.Base(name), err, out)
		}
	}
	do(dump, "--format=custom", "--file="+file, "--dbname="+e.db.DSN)
	return func(dsn string) {
		do(back, "--exit-on-error", "--no-owner", "--no-privileges", "--dbname="+dsn, file)
	}
}

// program is one of Postgres' own, "" where there is none.
func program(name string) string {
	if found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/" + name); len(found) > 0 {
		return found[len(found)-1]
	}
	path, _ := exec.LookPath(name)
	return path
}

// copyTo does by hand what a dump does: the schema, the rows, the sequence.
func (e *env) copyTo(t *testing.T) (restore func(dsn string)) {
	t.Helper()
	kept := map[string]*bytes.Buffer{}
	conn, err := pg.Connect(t.Context(), e.db.DSN, "dump", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(t.Context()) }()
	for _, table := range []string{"events", "streams", "relay_cursor", "relay_partitions"} {
		kept[table] = &bytes.Buffer{}
		if _, err := conn.PgConn().CopyTo(t.Context(), kept[table], "copy (table "+table+") to stdout"); err != nil {
			t.Fatal(err)
		}
	}
	return func(dsn string) {
		t.Helper()
		if err := pg.Migrate(t.Context(), dsn, eventstore.Migrations(), Migrations()); err != nil {
			t.Fatal(err)
		}
		conn, err := pg.Connect(t.Context(), dsn, "restore", nil)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close(t.Context()) }()
		for table, rows := range kept {
			if _, err := conn.PgConn().CopyFrom(t.Context(), strings.NewReader(rows.String()), "copy "+table+" from stdin"); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := conn.Exec(t.Context(), "select setval(pg_get_serial_sequence('events', 'position'), (select max(position) from events))"); err != nil {
			t.Fatal(err)
		}
	}
}
