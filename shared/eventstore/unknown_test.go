package eventstore_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/eventstore"
	"github.com/feira-shop/feira/shared/faulttest"
	"github.com/feira-shop/feira/shared/pg"
	"github.com/feira-shop/feira/shared/pg/pgtest"
)

// TestFaultUnknownOutcomes cuts the connection around the commit, again and again: every append is written exactly once.
func TestFaultUnknownOutcomes(t *testing.T) {
	t.Parallel()
	fault := faulttest.Begin(t, faulttest.Plan{Name: "Unknown outcomes",
		Does: "cuts a third of the connections around the commit of appends, before, within, after and late: each append is written once"})
	db := pgtest.New(t, eventstore.Migrations())
	dsn, proxy := throughProxy(t, db.DSN, 33, fault.Dice())
	defer proxy.stop()
	pool := open(t, dsn, 4)
	defer pool.Close()
	reg := prometheus.NewRegistry()
	s := eventstore.New(pool, eventstore.Options{Service: "counter", Registry: events.NewRegistry(Counted{}), Metrics: reg})
	defer run(t, s)()

	callers, each := 8, max(80, fault.Times(80, 600))
	ids := make([][]string, callers)
	var working sync.WaitGroup
	for c := range callers {
		working.Go(func() {
			for v := range int64(each) {
				a := counted(t, fmt.Sprintf("counter-%d", c), v)
				ids[c] = append(ids[c], a.Events[0].ID)
				if _, err := s.Append(t.Context(), a); err != nil {
					t.Errorf("append: %v", err)
					return
				}
			}
		})
	}
	working.Wait()
	expectCounts(t, reg, map[string]float64{"counted.v1 ": float64(callers * each)})
	direct := eventstore.New(db.Pool, eventstore.Options{Service: "counter"})
	for c := range callers {
		history, err := direct.History(t.Context(), fmt.Sprintf("counter-%d", c), eventstore.Until{})
		must(t, err)
		var stored []string
		for _, r := range history {
			stored = append(stored, r.ID)
		}
		if fmt.Sprint(stored) != fmt.Sprint(ids[c]) {
			t.Errorf("stream %d: stored %d events, appended %d, or others", c, len(stored), len(ids[c]))
		}
	}
	fault.Count("appends", callers*each)
	fault.Found("cuts before, within, after, late", fmt.Sprint(proxy.cuts[0].Load(), proxy.cuts[1].Load(), proxy.cuts[2].Load(), proxy.cuts[3].Load()))
	if proxy.total() < 15 {
		t.Errorf("only %d cuts", proxy.total())
	}
}

// TestTerminatedBackends has the server end the store's sessions, as when it shuts down: the same holds.
func TestTerminatedBackends(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t, eventstore.Migrations())
	pool, err := pg.Open(t.Context(), db.DSN, pg.PoolOptions{Name: "terminated", MaxConns: 3})
	must(t, err)
	defer pool.Close()
	s := eventstore.New(pool, eventstore.Options{Service: "counter"})
	defer run(t, s)()
	const callers, each = 4, 100
	var written atomic.Int64
	var working sync.WaitGroup
	for c := range callers {
		working.Go(func() {
			for v := range int64(each) {
				if _, err := s.Append(t.Context(), counted(t, fmt.Sprintf("counter-%d", c), v)); err != nil {
					t.Errorf("append: %v", err)
					return
				}
				written.Add(1)
			}
		})
	}
	for kill := int64(1); kill <= 8; kill++ {
		until(t, "more is written", func() bool { return t.Failed() || written.Load() >= kill*callers*each/10 })
		exec(t, db.Pool, "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'terminated' and datname = current_database()")
	}
	working.Wait()
	if n := one[int](t, db.Pool, "select count(*) from events"); n != callers*each {
		t.Errorf("%d events, want %d", n, callers*each)
	}
}

// TestFaultUnknownOutcomesWithin does the same to transactions that also write a row of their own.
func TestFaultUnknownOutcomesWithin(t *testing.T) {
	t.Parallel()
	fault := faulttest.Begin(t, faulttest.Plan{Name: "Unknown outcomes of transactions",
		Does: "cuts a quarter of the connections around the commit of transactions that load, write a row of their own and append: each is done once"})
	db := pgtest.New(t, eventstore.Migrations())
	exec(t, db.Pool, "create table own (stream text, version bigint)")
	dsn, proxy := throughProxy(t, db.DSN, 25, fault.Dice())
	defer proxy.stop()
	pool := open(t, dsn, 8)
	defer pool.Close()
	reg := prometheus.NewRegistry()
	s := eventstore.New(pool, eventstore.Options{Service: "counter", Metrics: reg})
	defer run(t, s)()

	callers, each := 6, max(25, fault.Times(25, 200))
	var working sync.WaitGroup
	for c := range callers {
		stream := fmt.Sprintf("counter-%d", c%3) // two callers each
		working.Go(func() {
			for done := 0; done < each; {
				err := s.Within(t.Context(), func(ctx context.Context, tx *eventstore.Tx) error {
					loaded, err := tx.Load(ctx, []string{stream})
					if err != nil {
						return err
					}
					tx.Later("insert into own values ($1, $2)", stream, loaded[stream].Version+1)
					tx.Append(counted(t, stream, loaded[stream].Version))
					return nil
				})
				if errors.Is(err, eventstore.ErrUnknown) {
					t.Errorf("within: %v", err)
					return
				}
				if err == nil { // else the connection was lost before the commit, and nothing is written
					done++
				}
			}
		})
	}
	working.Wait()
	expectCounts(t, reg, map[string]float64{"counted.v1 ": float64(callers * each)})
	wrong := one[int](t, db.Pool, `select count(*) from
 (select stream, count(*) n, max(version) v from events group by 1) e
 full join (select stream, count(*) n, count(distinct version) v from own group by 1) o using (stream)
 where e.n is distinct from $1 or e.v <> e.n or o.n is distinct from e.n or o.v <> o.n`, 2*each)
	if wrong != 0 || one[int](t, db.Pool, "select count(*) from events") != callers*each {
		t.Errorf("%d of 3 streams do not have exactly %d events and rows", wrong, 2*each)
	}
	fault.Count("transactions", callers*each)
	fault.Count("cuts", int(proxy.total()))
	if proxy.total() < 15 {
		t.Errorf("only %d cuts", proxy.total())
	}
}
