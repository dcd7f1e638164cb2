package shoptest_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/feira-shop/feira/api"
	"github.com/feira-shop/feira/internal/shoptest"
	"github.com/feira-shop/feira/services/inventory"
	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/faulttest"
	"github.com/feira-shop/feira/sim/provider"
)

// So many products, customers, and orders being placed at the same time.
const (
	skus   = 20
	people = 100
	atOnce = 48
)

// cards are how the provider treats a buyer's card: mostly well.
var cards = []string{
	"tok_visa", "tok_visa", "tok_visa", "tok_mastercard", "tok_visa", "tok_visa", "tok_visa", "tok_visa",
	"tok_timeout_after_charge", "tok_declined", "tok_processing_error", "tok_capture_fails",
}

// Twice as many orders as there are pieces, a provider that charges and then times out, refuses and stumbles, and
// customers who cancel and want money back at any moment, twice, and more than there is. What was captured is what was
// refunded and what is kept, no shelf is ever below nothing, and no order ends in two ways.
func TestFaultMoneyAndStock(t *testing.T) {
	t.Parallel()
	run := faulttest.Begin(t, faulttest.Plan{
		Number: 10, Name: "Money and stock races",
		Does: "Orders on 20 products short by half, a provider that charges and times out, cancellations and refunds at random; captured = refunded + kept, stock never negative, no order in two final states.",
	})
	orders := run.Times(400, 10_000)
	s := shoptest.Start(t, shoptest.Options{Hold: hold})
	r := &race{Shop: s, t: t, run: run}
	for range skus {
		r.skus = append(r.skus, s.Product(t, 1_500, int64(orders/skus/2)))
	}
	for range people {
		r.people = append(r.people, s.Customer(t))
	}
	var all errgroup.Group
	all.SetLimit(atOnce)
	for n := range orders {
		dice := run.Dice()
		all.Go(func() error {
			if err := r.buy(dice); err != nil {
				return fmt.Errorf("order %d: %w", n, err)
			}
			return nil
		})
	}
	if err := all.Wait(); err != nil {
		t.Fatal(err)
	}
	r.atRest()
	r.checkEnds()
	r.checkStock()
	r.checkMoney()
}

// race is many customers after few pieces.
type race struct {
	*shoptest.Shop
	t      *testing.T
	run    *faulttest.Run
	skus   []string
	people []*shoptest.Customer
}

// buy places one order, and then does what comes to the customer's mind.
func (r *race) buy(dice *rand.Rand) error {
	ana := r.people[dice.IntN(people)]
	body := ana.Checkout(r.skus[dice.IntN(skus)], 1, r.Card(cards[dice.IntN(len(cards))]))
	placed, err := ana.PlaceOrderWithResponse(r.t.Context(), &api.PlaceOrderParams{IdempotencyKey: r.Key()}, body)
	if err != nil {
		return err
	}
	if placed.JSON201 == nil {
		return fmt.Errorf("the checkout got %s %s", placed.Status(), placed.Body)
	}
	r.run.Count("orders", 1)
	o := *placed.JSON201
	wish, patient := dice.IntN(4), 1+dice.Int64N(6) // a paid order has version 6
	if wish > 1 {
		return nil
	}
	o, err = ana.Until(r.t.Context(), o, func(o api.Order) bool {
		return o.Version >= patient || o.Status == api.OrderStatusCancelled || o.FinancialStatus == api.FinancialStatusPaid
	})
	if err != nil {
		return err
	}
	if wish == 0 {
		return r.cancel(ana, o)
	}
	return r.refund(ana, o, dice)
}

// cancel cancels, as a customer does who is told that it is too late.
func (r *race) cancel(ana *shoptest.Customer, o api.Order) error {
	res, err := ana.CancelOrderWithResponse(r.t.Context(), o.Id, &api.CancelOrderParams{IdempotencyKey: r.Key()}, api.Cancellation{Reason: "changed my mind"})
	if err != nil {
		return err
	}
	switch res.StatusCode() {
	case http.StatusAccepted:
		r.run.Count("cancellations", 1)
	case http.StatusConflict: // it has ended
	default:
		return fmt.Errorf("the cancellation got %s %s", res.Status(), res.Body)
	}
	return nil
}

// refund asks for a part of the money, the same again, and all of it, as fast as can be.
func (r *race) refund(ana *shoptest.Customer, o api.Order, dice *rand.Rand) error {
	key := r.Key()
	for _, ask := range []struct {
		key    string
		amount int64
	}{{key, 1 + dice.Int64N(2*o.Total.Amount)}, {key, 0}, {r.Key(), o.Total.Amount}, {r.Key(), o.Total.Amount / 2}} {
		refund := api.Refund{Reason: "broken"}
		if ask.amount > 0 {
			refund.Amount = shoptest.BRL(ask.amount)
		}
		res, err := ana.RefundOrderWithResponse(r.t.Context(), o.Id, &api.RefundOrderParams{IdempotencyKey: ask.key}, refund)
		if err != nil {
			return err
		}
		switch res.StatusCode() {
		case http.StatusAccepted:
			r.run.Count("refunds", 1)
		case http.StatusConflict, http.StatusUnprocessableEntity: // not paid yet, ended, or more than there is
		default:
			return fmt.Errorf("the refund got %s %s", res.Status(), res.Body)
		}
	}
	return nil
}

// endWithin is how long the last orders may take: those whose charge timed out come again, one after the other.
const endWithin = 5 * time.Minute

// atRest waits until every order has come to its end.
func (r *race) atRest() {
	r.t.Helper()
	report, err := r.Examine(r.t.Context(), endWithin, 1)
	if err != nil || len(report.Open) > 0 {
		r.t.Fatalf("%d orders have not ended within %s, %v", len(report.Open), endWithin, err)
	}
}

// checkEnds demands that an order which was cancelled was so once and never went on.
func (r *race) checkEnds() {
	r.t.Helper()
	cancelled := map[string]bool{}
	for _, e := range r.Events(r.t, "orders") {
		switch e := e.Event.(type) {
		case events.OrderCancelled:
			if cancelled[e.Order] {
				r.t.Errorf("order %s was cancelled twice", e.Order)
			}
			cancelled[e.Order] = true
			r.run.Count("cancelled", 1)
		case events.OrderConfirmed:
			if cancelled[e.Order] {
				r.t.Errorf("order %s was confirmed after it was cancelled", e.Order)
			}
		}
	}
}

// checkStock plays the shelves again, event by event.
func (r *race) checkStock() {
	r.t.Helper()
	shelves := inventory.Shelves{}
	for _, e := range r.Events(r.t, "inventory") {
		inventory.Apply(shelves, e.Event)
		for _, sku := range r.skus {
			if s := shelves[sku]; s.Available() < 0 || s.Reserved < 0 {
				r.t.Fatalf("after position %d the shelf of %s is %+v", e.Sequence, sku, s)
			}
		}
	}
	reserved := map[string]int64{}
	confirmed, err := r.standing()
	if err != nil {
		r.t.Fatal(err)
	}
	for _, o := range confirmed {
		reserved[o.sku]++
	}
	for _, sku := range r.skus {
		if shelves[sku].Reserved != reserved[sku] {
			r.t.Errorf("%s: %d pieces are reserved for %d orders", sku, shelves[sku].Reserved, reserved[sku])
		}
	}
}

// checkMoney demands of the provider's own books: captured = refunded + kept, and kept is what the orders say that stand.
func (r *race) checkMoney() {
	r.t.Helper()
	var captured, refunded, kept int64
	seen := map[string]bool{}
	if err := provider.Ledger(r.t.Context(), r.Pool(shoptest.Provider), func(a provider.Authorization) error {
		captured, refunded = captured+a.Captured, refunded+a.Refunded
		if seen[a.Reference] {
			r.t.Errorf("payment %s was authorised twice", a.Reference)
		}
		seen[a.Reference] = true
		return nil
	}); err != nil {
		r.t.Fatal(err)
	}
	confirmed, err := r.standing()
	if err != nil {
		r.t.Fatal(err)
	}
	for _, o := range confirmed {
		kept += o.kept
	}
	if captured != refunded+kept || captured == 0 || refunded == 0 {
		r.t.Errorf("%d captured, %d refunded, %d kept by the orders that stand", captured, refunded, kept)
	}
	r.run.Found("centavos", fmt.Sprintf("%d captured = %d refunded + %d kept", captured, refunded, kept))
	r.run.Found("orders that stand", fmt.Sprint(len(confirmed)))
}

// standing is an order that is confirmed, and what it says is kept of its money.
type standing struct {
	sku  string
	kept int64
}

func (r *race) standing() ([]standing, error) {
	rows, err := r.Pool("orders").Query(r.t.Context(), `select state -> 'lines' -> 0 ->> 'sku',
		coalesce((state ->> 'captured')::bigint, 0) - coalesce((state ->> 'returned')::bigint, 0)
		from streams where stream like 'order-%' and state ->> 'status' = 'confirmed'`)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var all []standing
	for rows.Next() {
		var s standing
		if err := rows.Scan(&s.sku, &s.kept); err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return all, rows.Err()
}
