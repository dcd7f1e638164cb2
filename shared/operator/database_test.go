package operator

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/feira-shop/feira/shared/eventstore"
	"github.com/feira-shop/feira/shared/faulttest"
	"github.com/feira-shop/feira/shared/pg"
	"github.com/feira-shop/feira/shared/pg/pgtest"
)

// use has the world's operators reach their database at an address and with so many connections.
func (w *world) use(dsn string, maxConns int32) *pgxpool.Pool {
	w.t.Helper()
	pool, err := pg.Open(context.Background(), dsn, pg.PoolOptions{Name: "operators", MaxConns: maxConns})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(pool.Close)
	w.store = eventstore.New(pool, eventstore.Options{Service: "tests", Registry: w.store.Registry()})
	return pool
}

func TestFaultCutCommits(t *testing.T) {
	t.Parallel()
	run := faulttest.Begin(t, faulttest.Plan{
		Number: 7, Name: "Connections cut around COMMIT",
		Does: "the connection ends before the server has the commit, or before its answer arrives: every event took effect once, " +
			"and state in memory is that of the database",
	})
	for name, how := range map[string]cut{"before the server has it": unseen, "before its answer arrives": answered} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, facts)
			cut, dsn := newCutter(t, w.db.DSN, how)
			w.use(dsn, 4)
			s := &remembering{}
			w.start(w.operator(w.definition(s, facts), "m1"))
			log := w.publishFacts(facts, 30)
			w.awaitEffects(30)
			cuts := run.Times(10, 300) / 2
			for range cuts {
				cut.armed.Store(1)
				log = append(log, w.publishFacts(facts, 30)...)
				w.await("effects", func() bool { return w.effects() >= len(log) })
			}
			w.agrees(log, nil)
			if n := cut.cuts.Load(); n < int64(cuts) {
				t.Errorf("only %d commits were cut, want %d", n, cuts)
			}
			run.Count("cuts", int(cut.cuts.Load()))
			w.await("the memory", func() bool { return s.total() == len(log) })
			if s.unsettled() != 0 {
				t.Error("an outcome was never told to the handler")
			}
		})
	}
}

// ownServer gives the world a server of its own, and a function that restarts it and does something in between.
func (w *world) ownServer() (restart func(between func())) {
	w.t.Helper()
	must := func(err error) {
		w.t.Helper()
		if err != nil {
			w.t.Fatal(err)
		}
	}
	dir, err := os.MkdirTemp("", "feira-operator-test-") // that of w.t.TempDir is closed to the server's account
	must(err)
	w.t.Cleanup(func() { _ = os.RemoveAll(dir) })
	must(os.Chmod(dir, 0o755))
	options := pg.Options{Dir: filepath.Join(dir, "pg"), NoSync: true}
	server, err := pg.Start(context.Background(), options)
	must(err)
	w.t.Cleanup(func() { _ = server.Stop() })
	options.Port = server.Port()
	const database = "restarted"
	must(server.CreateDatabase(context.Background(), database))
	dsn := server.DSN(database)
	must(pg.Migrate(context.Background(), dsn, eventstore.Migrations(), Migrations(), effectsSet))
	w.db = &pgtest.DB{DSN: dsn, Pool: w.use(dsn, 4)}
	return func(between func()) {
		w.t.Helper()
		must(server.Stop())
		between()
		server, err = pg.Start(context.Background(), options)
		must(err)
	}
}

// The server restarts under load: connections end, and for a while there are none.
func TestFaultDatabaseRestarts(t *testing.T) {
	t.Parallel()
	run := faulttest.Begin(t, faulttest.Plan{
		Number: 7, Name: "Postgres restarts", Does: "the server is stopped under load and started again: every event took effect once, nothing is parked",
	})
	w := newWorld(t, facts)
	restart := w.ownServer()
	s := &remembering{}
	w.start(w.operator(w.definition(s, facts), "m1"))
	load := w.load(run.Dice(), 30*time.Millisecond)
	for range run.Times(1, 10) {
		n := w.effects()
		w.await("effects", func() bool { return w.effects() > n+200 })
		restart(func() { load.await(factsOfARound) })
		run.Count("restarts", 1)
	}
	log := load.stop()
	w.agrees(log, nil)
	run.Count("events", len(log))
	w.await("the memory", func() bool { return s.total() == len(log) })
}

// Tables that an operator reads and writes get another shape while it works; its statements are prepared.
func TestFaultLiveAlter(t *testing.T) {
	t.Parallel()
	run := faulttest.Begin(t, faulttest.Plan{
		Number: 7, Name: "Live ALTER TABLE",
		Does: "columns are added, widened and taken away under load in tables that an operator writes and reads, those of its checkpoints " +
			"too: every event took effect once, nothing is parked",
	})
	w := newWorld(t, facts)
	alter := func(sql string) {
		t.Helper()
		if _, err := w.db.Pool.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	alter("create table rates as select 1 as rate")
	w.use(w.db.DSN, 4)
	l := &ledger{before: func(ctx context.Context, tx *eventstore.Tx, _ []Record) error {
		return tx.Exec(ctx, "select * from rates") // whose result changes its type
	}}
	w.start(w.operator(w.definition(l, facts), "m1"))
	load := w.load(run.Dice(), 30*time.Millisecond)
	for i := range run.Times(2, 5) {
		n := w.effects()
		w.await("effects", func() bool { return w.effects() > n+100 })
		alter(fmt.Sprintf("alter table effects add more_%d text not null default ''", i))
		alter(fmt.Sprintf("alter table rates add rate_%d int", i))
		alter("alter table effects alter partition type bigint")
		alter("alter table checkpoints add if not exists note text")
		n = w.effects()
		w.await("effects", func() bool { return w.effects() > n+100 })
		alter("alter table checkpoints drop note")
		alter(fmt.Sprintf("alter table effects drop more_%d", i))
		run.Count("changes", 6)
	}
	log := load.stop()
	w.agrees(log, nil)
	run.Count("events", len(log))
}

// No statement needs a second connection while a transaction is open.
func TestFaultFewConnections(t *testing.T) {
	t.Parallel()
	run := faulttest.Begin(t, faulttest.Plan{
		Number: 7, Name: "Two connections for four operators", Does: "four operators share a pool of two connections: all finish, each with every event once",
	})
	w := newWorld(t, facts)
	w.use(w.db.DSN, 2)
	names := []string{"tests.0", "tests.1", "tests.2", "tests.3"}
	for _, name := range names {
		def := w.definition(&ledger{name: name}, facts)
		def.Name, def.MaxBatch = name, 10
		w.start(w.operator(def, "m1"))
	}
	log := w.publishFacts(facts, run.Times(300, 3000))
	w.await("effects", func() bool { return w.effects() == len(names)*len(log) })
	want, _ := oracle(log, nil)
	for _, name := range names {
		w.same("effects of "+name, w.read("select partition, id from effects where operator = $1 order by n", name), want)
	}
	run.Count("events", len(names)*len(log))
}

// The database is away while another member joins.
func TestFaultDatabaseAway(t *testing.T) {
	t.Parallel()
	run := faulttest.Begin(t, faulttest.Plan{
		Name: "The database away while a member joins",
		Does: "the database refuses connections, or does not answer, while a second member joins: afterwards every event took effect once, " +
			"nothing is parked, and the group is stable",
	})
	for name, away := range map[string]func(*faulttest.Network){"refuses": (*faulttest.Network).Down, "hangs": (*faulttest.Network).Hang} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, facts)
			network, dsn := faulttest.BeforePostgres(t, w.db.DSN)
			w.use(dsn, 4)
			w.start(w.operator(w.definition(&remembering{}, facts), "m1"))
			load := w.load(run.Dice(), 60*time.Millisecond)
			w.await("effects", func() bool { return w.effects() > 30 })
			away(network)
			second := w.operator(w.definition(&remembering{}, facts), "m2")
			w.start(second)
			over := time.After(run.For(4*time.Second, 90*time.Second))
			if name == "refuses" { // else the server may still get what was under way
				w.await("the end of all sessions", func() bool {
					return w.count("select count(*) from pg_stat_activity where application_name = 'operators' and datname = current_database()") == 0
				})
				n := w.effects()
				<-over
				if more := w.effects() - n; more != 0 {
					t.Errorf("%d effects without a database", more)
				}
			} else {
				<-over
			}
			n := w.effects()
			network.Down()
			network.Heal() // what got lost on the way does not come any more
			network.Up()
			back := time.Now()
			w.await("effects", func() bool { return w.effects() > n })
			run.Found("first effect after, when it "+name, time.Since(back).Round(10*time.Millisecond).String())
			w.await("the second member", func() bool { return second.Health() == nil })
			log := load.stop()
			w.agrees(log, nil)
			w.isStable(log)
			run.Count("events", len(log))
		})
	}
}

// isStable demands that the group has come to rest: events go on and no partition changes its owner.
func (w *world) isStable(log []*kgo.Record) {
	w.t.Helper()
	owners := func() int { return w.count("select sum(epoch) from checkpoints") }
	before := owners()
	for range 5 {
		log = append(log, w.publishFacts(facts, 30)...)
		w.await("effects", func() bool { return w.effects() >= len(log) })
	}
	w.agrees(log, nil)
	if now := owners(); now != before {
		w.t.Errorf("the group goes on rebalancing: epochs %d in sum, then %d", before, now)
	}
}
