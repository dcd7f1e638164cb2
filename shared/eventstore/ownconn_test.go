package eventstore_test

import (
	"context"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/feira-shop/feira/shared/eventstore"
	"github.com/feira-shop/feira/shared/pg/pgtest"
)

// TestAppendsDoNotWaitBehindReaders: with every connection of the pool taken, what writes still writes, and who watches hears of it.
func TestAppendsDoNotWaitBehindReaders(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t, eventstore.Migrations())
	s := eventstore.New(db.Pool, eventstore.Options{Service: "counter"})
	defer run(t, s)()
	for range db.Pool.Config().MaxConns {
		conn, err := db.Pool.Acquire(t.Context())
		must(t, err)
		defer conn.Release()
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	changed, stop := s.Watch("counter-1")
	defer stop()
	_, err := s.Append(ctx, counted(t, "counter-1", 0))
	must(t, err)
	select {
	case <-changed:
	case <-ctx.Done():
		t.Error("who watches was told nothing")
	}
}

// TestALaneNoticesThatItsSessionEnded: a server that was restarted while nothing was written leaves no outcome unknown.
func TestALaneNoticesThatItsSessionEnded(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t, eventstore.Migrations())
	reg := prometheus.NewRegistry()
	s := eventstore.New(db.Pool, eventstore.Options{Service: "counter", Metrics: reg})
	defer run(t, s)()
	_, err := s.Append(t.Context(), counted(t, "counter-1", 0))
	must(t, err)
	exec(t, db.Pool, "select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid() and query like '%es_append%'")
	time.Sleep(eventstore.IdleBeforePing + 100*time.Millisecond)
	_, err = s.Append(t.Context(), counted(t, "counter-2", 0))
	must(t, err)
	families, err := reg.Gather()
	must(t, err)
	for _, f := range families {
		if f.GetName() == "feira_store_append_unknown_total" {
			if n := f.GetMetric()[0].GetCounter().GetValue(); n != 0 {
				t.Errorf("%v outcomes were unknown", n)
			}
			return
		}
	}
	t.Error("there is no count of unknown outcomes")
}
