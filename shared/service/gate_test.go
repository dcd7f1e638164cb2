package service

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/faulttest"
	"github.com/feira-shop/feira/shared/relay"
)

func TestFaultRestoredStoreHearsNothing(t *testing.T) {
	t.Parallel()
	faulttest.Begin(t, faulttest.Plan{Name: "A restored store hears nothing", Does: "the database of a service is restored, somewhere else, to a state before an " +
		"event that was published: its relay stops, its operators do not begin; when the event was copied back from the log, both go on"})
	d := definition()
	g := newGround(t, d)
	r := g.start(d)
	for _, order := range []string{"a", "b"} { // one customer, so one partition
		if err := earn(t.Context(), r.Runtime.Store, order); err != nil {
			t.Fatal(err)
		}
	}
	g.await("both to be heard", func() bool { return g.count("select count(*) from heard") == 2 })
	g.await("both to be published", func() bool { return g.count("select position from relay_cursor") == 2 })
	stop(r)
	g.restoreBeforeTheLast()

	r = g.start(d)
	var restored *relay.StoreRestoredError
	g.await("the relay to stop", func() bool { return errors.As(failing(r)["relay"], &restored) })
	select { // the operators had time enough to begin
	case <-time.After(2 * time.Second):
	case <-t.Context().Done():
	}
	if err := failing(r)["operator loyalty.mirror"]; !errors.Is(err, errCompare) {
		t.Errorf("the operator's health is %v", err)
	}
	if n := g.count("select count(*) from heard"); n != 1 {
		t.Errorf("the restored service heard of %d orders", n)
	}
	stop(r)

	back, err := relay.Recover(t.Context(), g.db.DSN, g.broker.Config("recover"), events.Loyalty, false, func(context.Context, pgx.Tx, string) error { return nil })
	if err != nil || back.Events != 1 {
		t.Fatalf("%+v came back: %v", back, err)
	}
	r = g.start(d)
	g.await("health", func() bool { return len(failing(r)) == 0 })
	g.await("both to be heard, once", func() bool { return g.count("select count(*) from heard") == 2 })
}

// restoreBeforeTheLast makes the database what a dump had, taken when one event was there, and published, and heard.
func (g *ground) restoreBeforeTheLast() {
	g.t.Helper()
	_, err := g.db.Pool.Exec(g.t.Context(), `delete from events where position = 2; delete from streams where stream = 'points-b';
		delete from heard where who = 'b'; update checkpoints set next_offset = 1, source_position = 1 where next_offset = 2;
		update relay_cursor set position = 1, database = 'another'; update relay_partitions set last_position = 1, next_offset = 1`)
	if err != nil {
		g.t.Fatal(err)
	}
}
