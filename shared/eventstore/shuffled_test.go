package eventstore_test

import (
	"fmt"
	"testing"

	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/eventstore"
	"github.com/feira-shop/feira/shared/faulttest"
	"github.com/feira-shop/feira/shared/pg/pgtest"
)

// Rows lie as their last updates left them, and a plan over a small table reads them as they lie: nothing but "order by"
// gives a stream in the order of its versions.
func TestFaultShuffledTable(t *testing.T) {
	t.Parallel()
	run := faulttest.Begin(t, faulttest.Plan{Name: "A shuffled table",
		Does: "updates the rows of a small table in random order and reads it without its indexes: a stream is read in the order of its versions, the store in that of its positions"})
	db := pgtest.New(t, eventstore.Migrations())
	writing := start(t, db.Pool)
	const streams, each = 3, 8
	for v := range int64(each) {
		for n := range streams {
			_, err := writing.Append(t.Context(), counted(t, fmt.Sprintf("counter-%d", n), v))
			must(t, err)
		}
	}
	for _, by := range []int{1000, -1000} { // of an indexed column: else the index goes on leading to where the row was
		for _, position := range run.Dice().Perm(streams * each) {
			exec(t, db.Pool, "update events set version = version + $2 where position = $1", position+1, by)
		}
	}
	exec(t, db.Pool, `do $$ begin
  execute format('alter database %I set enable_indexscan = off', current_database());
  execute format('alter database %I set enable_indexonlyscan = off', current_database());
end $$`)
	s := eventstore.New(open(t, db.DSN, 2), eventstore.Options{Service: "counter", Registry: events.NewRegistry(Counted{})})

	inOrder := func(how string, history []events.Recorded, err error) {
		t.Helper()
		must(t, err)
		for i, r := range history {
			if e, ok := r.Event.(Counted); !ok || e.N != i+1 || len(history) != each {
				t.Fatalf("%s: event %d of %d is %+v", how, i+1, len(history), r.Event)
			}
		}
	}
	for n := range streams {
		stream := fmt.Sprintf("counter-%d", n)
		history, err := s.History(t.Context(), stream, eventstore.Until{})
		inOrder("history", history, err)
		tx, err := s.Begin(t.Context())
		must(t, err)
		history, err = tx.History(t.Context(), stream)
		tx.Rollback()
		inOrder("history in a transaction", history, err)
	}
	last := int64(0)
	must(t, s.Each(t.Context(), 0, func(r events.Recorded) error {
		if r.Sequence != last+1 {
			t.Errorf("position %d comes after %d", r.Sequence, last)
		}
		last = r.Sequence
		return nil
	}))
	if last != streams*each {
		t.Errorf("%d events, expected %d", last, streams*each)
	}
}
