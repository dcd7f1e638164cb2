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

// A window with many accounts closes in several transactions: until the last, those that were said are shown as closed
// and the others as open, each once.
func TestAWindowThatIsHalfClosedIsShownOnce(t *testing.T) {
	t.Parallel()
	own, err := fs.Sub(migrations, "migrations")
	if err != nil {
		t.Fatal(err)
	}
	db := pgtest.New(t, stream.Migrations(), pg.Set{Name: "analytics", FS: own})
	start := base()
	for sql, args := range map[string][]any{
		`insert into stream_partials (operator, topic, partition, pane, entries) values ('analytics.spend', 'payments', 0, $1, '{"BRL ana":{"payments":1,"captured":5,"refunds":0,"refunded":0},"BRL bia":{"payments":1,"captured":7,"refunds":0,"refunded":0}}')`: {start.UnixMicro()},
		`insert into stream_windows (operator, closed_until, closed_key) values ('analytics.spend', $1, 'BRL ana')`:                                                                                                                                                {start.UnixMicro()},
		`insert into account_spend select 'ana', 'BRL', $1::timestamptz, $1::timestamptz + interval '5 minutes', 1, 5, 0, 0, 1`:                                                                                                                                    {start},
	} {
		if _, err := db.Pool.Exec(t.Context(), sql, args...); err != nil {
			t.Fatal(err)
		}
	}
	rows, err := listSpend(t.Context(), db.Pool, 5*time.Minute, "", period{start, start.Add(time.Hour)}, spentPlace{}, 10)
	if err != nil || len(rows) != 2 || rows[0].Account != "ana" || rows[0].Revision != 1 || rows[1].Account != "bia" || rows[1].Revision != 0 || rows[1].Captured != 7 {
		t.Errorf("it is shown as %+v, %v", rows, err)
	}
}
