package inventory

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/feira-shop/feira/shared/decider"
	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/eventstore"
	"github.com/feira-shop/feira/shared/faulttest"
	"github.com/feira-shop/feira/shared/operator"
	"github.com/feira-shop/feira/shared/pg"
	"github.com/feira-shop/feira/shared/pg/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

func open(t *testing.T) *eventstore.Store {
	t.Helper()
	own, err := fs.Sub(migrations, "migrations")
	if err != nil {
		t.Fatal(err)
	}
	db := pgtest.New(t, eventstore.Migrations(), pg.Set{Name: "inventory", FS: own})
	return eventstore.New(db.Pool, eventstore.Options{Service: "inventory", Registry: events.NewRegistry(ReservationClosed{})})
}

func placed(order string, lines ...events.Quantity) events.Event {
	e := events.OrderPlaced{Order: order}
	for _, l := range lines {
		e.Lines = append(e.Lines, events.Line{SKU: l.SKU, Quantity: l.Quantity})
	}
	return e
}

func cancelled(order string) events.Event { return events.OrderCancelled{Order: order} }

// apply hands events to the operator's handler as one batch, tried again as the operator does.
func apply(ctx context.Context, store *eventstore.Store, happened ...events.Event) error {
	batch := make([]operator.Record, len(happened))
	for i, e := range happened {
		batch[i].Recorded = events.Recorded{Meta: events.Meta{ID: fmt.Sprintf("event-%d", i)}, Event: e, Type: e.EventType()}
	}
	return store.Within(ctx, func(ctx context.Context, tx *eventstore.Tx) error {
		return reserveOperator.Handler(store).Apply(ctx, tx, batch)
	})
}

func mustApply(t *testing.T, store *eventstore.Store, happened ...events.Event) {
	t.Helper()
	if err := apply(t.Context(), store, happened...); err != nil {
		t.Fatal(err)
	}
}

func mustReceive(t *testing.T, store *eventstore.Store, deliveries ...Delivery) int {
	t.Helper()
	fresh, err := receive(t.Context(), store, "op", deliveries)
	if err != nil {
		t.Fatal(err)
	}
	return fresh
}

func shelf(t *testing.T, store *eventstore.Store, sku string) Shelf {
	t.Helper()
	var s Shelf
	if err := store.Pool().QueryRow(t.Context(), "select on_hand, reserved from stock where sku = $1", sku).Scan(&s.OnHand, &s.Reserved); err != nil {
		t.Fatal(err)
	}
	return s
}

// counts says how many events of each type the store holds.
func counts(t *testing.T, store *eventstore.Store) map[string]int {
	t.Helper()
	found := map[string]int{}
	for _, e := range []events.Event{events.StockReserved{}, events.StockRefused{}, events.StockReleased{}, events.StockReceived{}, ReservationClosed{}} {
		var n int
		if err := store.Pool().QueryRow(t.Context(), "select count(*) from events where type = $1", e.EventType()).Scan(&n); err != nil {
			t.Fatal(err)
		}
		found[fmt.Sprintf("%T", e)] = n
	}
	return found
}

// Stock 10, 200 orders of 1 in a few batches, some redelivered: 10 reserved, 190 refused, never below 0.
func TestFaultTenPiecesForTwoHundredOrders(t *testing.T) {
	t.Parallel()
	faulttest.Begin(t, faulttest.Plan{
		Name: "The last pieces", Does: "200 orders want one of 10 pieces, some of them redelivered; 10 are reserved, 190 refused, and never more than there is.",
	})
	store := open(t)
	mustReceive(t, store, Delivery{Receipt: "r1", SKU: "CAFE", Quantity: 10})
	for from := 0; from < 200; from += 40 {
		var batch []events.Event
		for i := range 50 { // 10 of them again in the next batch
			batch = append(batch, placed(fmt.Sprint(min(199, from+i)), pieces("CAFE", 1)...))
		}
		mustApply(t, store, batch...)
	}
	got := counts(t, store)
	if got["events.StockReserved"] != 10 || got["events.StockRefused"] != 190 || shelf(t, store, "CAFE") != (Shelf{10, 10}) {
		t.Errorf("%v, shelf %+v", got, shelf(t, store, "CAFE"))
	}
}

func TestReleasedStockIsFreeForTheNextOrderOfTheBatch(t *testing.T) {
	t.Parallel()
	store := open(t)
	mustReceive(t, store, Delivery{Receipt: "r1", SKU: "CAFE", Quantity: 2}, Delivery{Receipt: "r2", SKU: "MEL", Quantity: 1})
	mustApply(t, store, placed("a", pieces("CAFE", 2)...))
	mustApply(t, store, placed("b", pieces("CAFE", 1)...), cancelled("a"), placed("c", pieces("CAFE", 1, "MEL", 1, "CAFE", 1)...), cancelled("b"))
	for order, want := range map[string]Status{"a": Released, "b": Refused, "c": Reserved} {
		if s, err := store.Load(t.Context(), Stream(order)); err != nil || !hasStatus(s, want) {
			t.Errorf("%s is %s, %v, want %s", order, s.State, err, want)
		}
	}
	if shelf(t, store, "CAFE") != (Shelf{2, 2}) || shelf(t, store, "MEL") != (Shelf{1, 1}) {
		t.Errorf("shelves %+v, %+v", shelf(t, store, "CAFE"), shelf(t, store, "MEL"))
	}
	mustApply(t, store, cancelled("c"), cancelled("c"), cancelled("a"))
	if got := counts(t, store); got["events.StockReleased"] != 2 || shelf(t, store, "CAFE") != (Shelf{2, 0}) {
		t.Errorf("%v, shelf %+v", got, shelf(t, store, "CAFE"))
	}
}

func hasStatus(s eventstore.Stream, want Status) bool {
	r, err := reservations.Restore(s, nil)
	return err == nil && r.Status == want
}

func TestACancellationMayComeFirst(t *testing.T) {
	t.Parallel()
	store := open(t)
	mustReceive(t, store, Delivery{Receipt: "r1", SKU: "CAFE", Quantity: 2})
	mustApply(t, store, cancelled("a"))
	mustApply(t, store, placed("a", pieces("CAFE", 1)...))
	mustApply(t, store, cancelled("b"), placed("b", pieces("CAFE", 1)...))
	if got := counts(t, store); got["inventory.ReservationClosed"] != 2 || got["events.StockReserved"] != 0 || shelf(t, store, "CAFE") != (Shelf{2, 0}) {
		t.Errorf("%v, shelf %+v", got, shelf(t, store, "CAFE"))
	}
}

// A state that an older release wrote is folded anew; a history that cannot be read is an error, not a guess.
func TestAnOlderStateIsFolded(t *testing.T) {
	t.Parallel()
	store := open(t)
	mustReceive(t, store, Delivery{Receipt: "r1", SKU: "CAFE", Quantity: 5})
	mustApply(t, store, placed("a", pieces("CAFE", 2)...), placed("b", pieces("CAFE", 1)...), placed("c", pieces("CAFE", 1)...))
	run := func(sql string) {
		t.Helper()
		if _, err := store.Pool().Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	run(`update streams set shape = 99, state = '{"status": 7}' where stream = 'reservation-a'`)
	run(`update streams set state = '"nonsense"' where stream = 'reservation-b'`)
	run(`update events set type = 'shop.feira.stock.hidden.v1' where stream = 'reservation-c'`)
	run(`update streams set shape = 99 where stream = 'reservation-c'`)
	mustApply(t, store, cancelled("a"), cancelled("b"))
	if shelf(t, store, "CAFE") != (Shelf{5, 1}) {
		t.Errorf("shelf %+v", shelf(t, store, "CAFE"))
	}
	var unknown *decider.UnknownHistoryError
	if err := apply(t.Context(), store, cancelled("c")); !errors.As(err, &unknown) {
		t.Errorf("an unknown event in the history: %v", err)
	}
}

func TestAReceiptCountsOnce(t *testing.T) {
	t.Parallel()
	store := open(t)
	d := Delivery{Receipt: "r1", SKU: "CAFE", Quantity: 5}
	if mustReceive(t, store, d, d) != 1 || mustReceive(t, store, d) != 0 {
		t.Error("a receipt counted twice")
	}
	var reused *ReceiptReusedError
	for _, other := range [][]Delivery{{{"r1", "CAFE", 6}}, {{"r1", "MEL", 5}}, {{"r2", "MEL", 5}, {"r2", "MEL", 6}}} {
		if _, err := receive(t.Context(), store, "op", other); !errors.As(err, &reused) {
			t.Errorf("%v: %v", other, err)
		}
	}
	var wg sync.WaitGroup
	for range 20 { // the same start of 20 replicas
		wg.Go(func() {
			if _, err := receive(t.Context(), store, "op", []Delivery{{"r3", "MEL", 1}, {"r4", "CAFE", 1}}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if shelf(t, store, "CAFE") != (Shelf{6, 0}) || shelf(t, store, "MEL") != (Shelf{1, 0}) || counts(t, store)["events.StockReceived"] != 3 {
		t.Errorf("shelves %+v, %+v, %v", shelf(t, store, "CAFE"), shelf(t, store, "MEL"), counts(t, store))
	}
}

// Receipts and two replicas of the operator at once, each with the products in another order: nobody deadlocks, and
// the shelves are what the events say.
func TestReceiptsAndReservationsAtOnce(t *testing.T) {
	t.Parallel()
	store := open(t)
	skus := []string{"A", "B", "C", "D", "E", "F"}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	var wg sync.WaitGroup
	for worker := range 8 {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(seed, uint64(worker)))
			for i := range 20 {
				if worker%2 == 0 {
					var deliveries []Delivery
					for _, n := range r.Perm(len(skus)) {
						deliveries = append(deliveries, Delivery{fmt.Sprintf("r-%d-%d-%d", worker, i, n), skus[n], 1 + r.Int64N(5)})
					}
					if _, err := receive(t.Context(), store, "op", deliveries); err != nil {
						t.Errorf("receipt: %v", err)
					}
					continue
				}
				var batch []events.Event
				for j := range 20 {
					order := fmt.Sprintf("o-%d-%d", worker, i*20+j)
					lines := pieces(skus[r.IntN(6)], 1+r.IntN(3), skus[r.IntN(6)], 1+r.IntN(3))
					batch = append(batch, placed(order, lines...))
					if r.IntN(2) == 0 {
						batch = append(batch, cancelled(fmt.Sprintf("o-%d-%d", worker, r.IntN(i*20+j+1))))
					}
				}
				if err := apply(t.Context(), store, batch...); err != nil {
					t.Errorf("batch: %v", err)
				}
			}
		})
	}
	wg.Wait()
	want := Shelves{}
	if err := store.EachStream(t.Context(), func(s eventstore.Stream) error {
		history, err := store.History(t.Context(), s.Name, eventstore.Until{})
		for _, e := range history {
			Apply(want, e.Event)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	for sku, s := range want {
		if got := shelf(t, store, sku); got != s || s.OnHand == 0 {
			t.Errorf("the shelf of %s is %+v, the events say %+v", sku, got, s)
		}
	}
	var deadlocks int
	if err := store.Pool().QueryRow(t.Context(), "select deadlocks from pg_stat_database where datname = current_database()").Scan(&deadlocks); err != nil || deadlocks != 0 {
		t.Errorf("%d deadlocks, %v", deadlocks, err)
	}
}
