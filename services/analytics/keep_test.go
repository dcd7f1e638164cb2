package analytics

import (
	"context"
	"io/fs"
	"testing"
	"time"

	"github.com/feira-shop/feira/shared/eventstore"
	"github.com/feira-shop/feira/shared/pg"
	"github.com/feira-shop/feira/shared/pg/pgtest"
	"github.com/feira-shop/feira/shared/stream"
)

// A revision replaces the one before it, and is never replaced by it.
func TestTheNewestRevisionStands(t *testing.T) {
	t.Parallel()
	own, err := fs.Sub(migrations, "migrations")
	if err != nil {
		t.Fatal(err)
	}
	db := pgtest.New(t, eventstore.Migrations(), pg.Set{Name: "analytics", FS: own})
	store := eventstore.New(db.Pool, eventstore.Options{Service: "analytics", Registry: Service(Config{}).Registry()})
	window := stream.Window{Start: base(), End: base().Add(5 * time.Minute)}
	for _, revision := range []int{1, 3, 2} {
		err := store.Within(t.Context(), func(_ context.Context, tx *eventstore.Tx) error {
			spend := stream.Result[Spend]{Key: "BRL ana", Window: window, Value: Spend{Captured: int64(revision)}, Revision: revision}
			if err := keepSpend(tx, []stream.Result[Spend]{spend}); err != nil {
				return err
			}
			sales := Sales{"TEA": {Quantity: int64(revision), Orders: 1}}
			return keepTop(tx, []stream.Result[Sales]{{Window: window, Value: sales, Revision: revision}})
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	var captured, quantity, rows int
	err = db.Pool.QueryRow(t.Context(), `select s.captured, (t.products -> 0 ->> 'quantity')::int, count(*) over () from account_spend s, top_products t
		where s.revision = 3 and t.revision = 3`).Scan(&captured, &quantity, &rows)
	if err != nil || captured != 3 || quantity != 3 || rows != 1 {
		t.Errorf("%d captured, %d sold, %d rows, %v", captured, quantity, rows, err)
	}
}
