package decider_test

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/feira-shop/feira/shared/decider"
	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/eventstore"
	"github.com/feira-shop/feira/shared/operator"
)

var routes = []decider.Route{
	decider.On(func(e events.PaymentCaptured) (string, any) {
		if e.Customer == "" {
			return "", nil
		}
		return "loyalty-" + e.Customer, earn{Customer: e.Customer, Order: e.Order}
	}),
	decider.On(func(e events.PaymentRefunded) (string, any) {
		return "loyalty-" + e.Customer, reverse{e.Customer, e.Order, e.Refunded.Amount}
	}),
	decider.OnRecorded(func(r events.Recorded, e events.OrderCancelled) (string, any) {
		return "loyalty-" + e.Customer, earn{e.Customer, "consolation-" + r.ID, ""}
	}),
}

func captured(customer, order string) events.Event {
	return events.PaymentCaptured{Purchase: events.Purchase{Customer: customer, Order: order}}
}

func refunded(customer, order string, points int64) events.Event {
	e := events.PaymentRefunded{Purchase: events.Purchase{Customer: customer, Order: order}}
	e.Refunded.Amount = points
	return e
}

// batchOf makes records as an operator hands them over; record n has the id "n".
func batchOf(evs ...events.Event) []operator.Record {
	batch := make([]operator.Record, len(evs))
	for i, e := range evs {
		batch[i] = operator.Record{
			Recorded: events.Recorded{
				Meta: events.Meta{ID: fmt.Sprint(i), Correlation: "story", Traceparent: "trace"},
				Type: e.EventType(), Event: e,
			},
			Topic: "payments", Offset: int64(i),
		}
	}
	return batch
}

// apply runs a batch as the operator loop does.
func apply(t *testing.T, store *eventstore.Store, d decider.Decider[account], batch []operator.Record) error {
	t.Helper()
	tx, err := store.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	handler := decider.Operator("loyalty.account", d, routes...).Handler(store)
	if err := handler.Apply(t.Context(), tx, batch); err != nil {
		return err
	}
	return tx.Commit(t.Context(), "es_commit")
}

func TestOperatorHearsWhatItsRoutesName(t *testing.T) {
	t.Parallel()
	def := decider.Operator("loyalty.account", rules, append(routes, routes[0])...)
	if def.Name != "loyalty.account" || def.Start != operator.Beginning {
		t.Errorf("got %q, start %v", def.Name, def.Start)
	}
	if !reflect.DeepEqual(def.Topics, []events.Topic{events.Payments, events.Orders}) {
		t.Errorf("got topics %v", def.Topics)
	}
	if got := strings.Join(def.Types, " "); got != "shop.feira.payment.captured.v1 shop.feira.payment.refunded.v1 shop.feira.order.cancelled.v1" {
		t.Errorf("got types %s", got)
	}
}

// private is an event that no topic carries.
type private struct{}

func (private) EventType() string { return "shop.feira.test.private.done.v1" }
func (private) EventKey() string  { return "" }

func TestARouteOfAPrivateEventIsNamed(t *testing.T) {
	t.Parallel()
	def := decider.Operator("loyalty.odd", rules, decider.On(func(private) (string, any) { return "", nil }))
	if len(def.Topics) != 1 || !strings.Contains(def.Topics[0].Name, "shop.feira.test.private.done.v1") {
		t.Errorf("got %v; want a topic that cannot exist and names the type", def.Topics)
	}
}

func TestABatchIsOneAppendPerStream(t *testing.T) {
	t.Parallel()
	store := open(t)
	err := apply(t, store, rules, batchOf(
		captured("ana", "o1"), captured("bia", "o2"), captured("ana", "o1"), // the third repeats the first
		captured("ana", "o3"), refunded("ana", "o1", 15), captured("", "o4"), events.OrderCancelled{Customer: "caio"},
	))
	if err != nil {
		t.Fatal(err)
	}
	for stream, want := range map[string]string{
		"loyalty-ana": "earned o1, earned o3, reversed 15", "loyalty-bia": "earned o2", "loyalty-caio": "earned consolation-6", "loyalty-": "",
	} {
		if got := plain(history(t, store, stream)); got != want {
			t.Errorf("%s: got %s, want %s", stream, got, want)
		}
	}
	s, a := kept(t, store, "loyalty-ana")
	if s.Version != 3 || s.Shape != 1 || a.Points != 5 {
		t.Errorf("kept %+v, %+v; want version 3 and 5 points", s, a)
	}
	// The same batch again, and what follows: facts are repeated, effects are not.
	if err := apply(t, store, rules, batchOf(captured("ana", "o1"), captured("bia", "o2"), captured("ana", "o5"))); err != nil {
		t.Fatal(err)
	}
	if got := plain(history(t, store, "loyalty-ana")); got != "earned o1, earned o3, reversed 15, earned o5" {
		t.Errorf("got %s", got)
	}
}

func TestEventsCarryTheStoryOn(t *testing.T) {
	t.Parallel()
	store := open(t)
	batch := batchOf(captured("ana", "o1"), captured("ana", "o2"))
	batch[1].Correlation = ""
	if err := apply(t, store, rules, batch); err != nil {
		t.Fatal(err)
	}
	h := history(t, store, "loyalty-ana")
	for i, want := range []events.Meta{
		{Time: noon, Correlation: "story", Causation: "0", Traceparent: "trace"},
		{Time: noon, Correlation: "1", Causation: "1", Traceparent: "trace"},
	} {
		got := h[i].Meta
		if len(got.ID) != 36 || got.ID[14] != '7' {
			t.Errorf("event %d: id %q is not a UUIDv7", i, got.ID)
		}
		if got.ID = ""; got != want {
			t.Errorf("event %d: got %+v, want %+v", i, got, want)
		}
	}
	if h[0].ID >= h[1].ID {
		t.Errorf("ids do not ascend: %s, %s", h[0].ID, h[1].ID)
	}
}

func TestAnErrorOfTheDeciderIsRejected(t *testing.T) {
	t.Parallel()
	store := open(t)
	for name, batch := range map[string][]operator.Record{
		"refused":   batchOf(captured("ana", "o1"), refunded("ana", "o1", 999)),
		"too large": batchOf(captured("ana", strings.Repeat("x", eventstore.MaxEventBytes))),
	} {
		err := apply(t, store, rules, batch)
		var rejected *operator.RejectedError
		if !errors.As(err, &rejected) {
			t.Errorf("%s: got %v, want it rejected", name, err)
		}
	}
	var short *shortError
	if err := apply(t, store, rules, batchOf(refunded("ana", "o1", 999))); !errors.As(err, &short) || short.Want != 999 {
		t.Errorf("got %v, want the decider's own error within", err)
	}
	if h := history(t, store, "loyalty-ana"); len(h) > 0 {
		t.Errorf("events were written: %s", plain(h))
	}
}

func TestAnotherFailureIsNotRejected(t *testing.T) {
	t.Parallel()
	store := open(t)
	tx, err := store.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	if err := tx.Exec(t.Context(), "select 1/0"); err == nil {
		t.Fatal("the transaction was to fail")
	}
	err = decider.Operator("loyalty.account", rules, routes...).Handler(store).Apply(t.Context(), tx, batchOf(captured("ana", "o1")))
	var rejected *operator.RejectedError
	if err == nil || errors.As(err, &rejected) {
		t.Errorf("got %v, want an error that is retried", err)
	}
}

func TestRecordsThatMeanNothingNeedNoTransaction(t *testing.T) {
	t.Parallel()
	batch := batchOf(captured("", "o1"), private{})
	batch[1].Event = nil
	if err := decider.Operator("loyalty.account", rules, routes...).Handler(nil).Apply(t.Context(), nil, batch); err != nil {
		t.Errorf("got %v", err)
	}
}

func TestAStateOfAnotherShapeIsFoldedAnew(t *testing.T) {
	t.Parallel()
	store := open(t)
	if err := apply(t, store, rules, batchOf(captured("ana", "o1"), captured("ana", "o2"))); err != nil {
		t.Fatal(err)
	}
	double := rules // the next release counts twice
	double.Shape = 2
	double.Evolve = func(a account, e events.Event) account {
		before := a.Points
		a = evolve(a, e)
		a.Points += a.Points - before
		return a
	}
	if err := apply(t, store, double, batchOf(captured("ana", "o3"))); err != nil {
		t.Fatal(err)
	}
	if s, a := kept(t, store, "loyalty-ana"); s.Shape != 2 || s.Version != 3 || a.Points != 60 {
		t.Errorf("kept %+v, %+v; want shape 2 and 60 points", s, a)
	}
}

func TestAStateThatDoesNotDecodeIsFoldedAnew(t *testing.T) {
	t.Parallel()
	store := open(t)
	if err := apply(t, store, rules, batchOf(captured("ana", "o1"))); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Pool().Exec(t.Context(), `update streams set state = '{"points":"many"}'`); err != nil {
		t.Fatal(err)
	}
	if err := apply(t, store, rules, batchOf(captured("ana", "o2"))); err != nil {
		t.Fatal(err)
	}
	if _, a := kept(t, store, "loyalty-ana"); a.Points != 20 {
		t.Errorf("got %d points, want 20", a.Points)
	}
}
