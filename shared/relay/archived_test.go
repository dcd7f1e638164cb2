package relay

import (
	"errors"
	"testing"

	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/eventstore"
	"github.com/feira-shop/feira/shared/eventstore/archive"
)

// What is archived was published and compared before: the relay goes on without it, also where it compares more than
// necessary. Publishing the store anew needs it, and says so.
func TestTheRelayDoesWithoutWhatIsArchived(t *testing.T) {
	t.Parallel()
	e := newEnv(t, events.Orders)
	e.exec(`drop table events_1; select es_make_parts(100); select es_make_parts(100, 300);
		create table operator_audit (operator text, action text, who text, detail text)`)
	e.append(placed, keys(250)...)
	_, stop := e.start()
	e.drained()
	stop()
	store := eventstore.New(e.db.Pool, eventstore.Options{Service: "orders"})
	done, err := archive.Run(t.Context(), store, archive.Options{
		Service: "orders", DSN: e.db.DSN, Dir: t.TempDir(), Published: e.cursor(), Before: 101, Cut: true,
	})
	if err != nil || len(done) != 1 || done[0].LastPosition != 100 {
		t.Fatalf("archived %+v: %v", done, err)
	}
	e.exec("update relay_partitions set next_offset = 0") // as if no offset had ever been answered
	e.append(placed, keys(50)...)
	r, stop := e.start()
	e.drained()
	stop()
	if err := r.Health(); err != nil {
		t.Errorf("it stopped: %v", err)
	}

	e.exec("update relay_cursor set position = 99")
	var gone *eventstore.ArchivedError
	r, stop = e.start()
	e.until("the relay has stopped", func() bool { return r.Health() != nil })
	stop()
	if err := r.Health(); !errors.As(err, &gone) || gone.After != 99 || gone.Last != 100 || gone.Service != "orders" {
		t.Errorf("from before the end of what is archived: %v", err)
	}
	var said noted
	if _, err := PublishAnew(t.Context(), e.db.DSN, e.topic, true, said.note); !errors.As(err, &gone) || gone.After != 0 {
		t.Errorf("anew: %v", err)
	}
	e.exec("update relay_cursor set position = 100")
	e.start()
	e.drained()
}
