package journeys

import (
	"net/http"
	"testing"
	"time"

	"github.com/feira-shop/feira/api"
	"github.com/feira-shop/feira/internal/shoptest"
	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/sim/provider"
)

// reach waits until a moment of event time: the rule on duplicates compares when orders were placed.
func reach(t *testing.T, moment time.Time) {
	t.Helper()
	select {
	case <-time.After(time.Until(moment)):
	case <-t.Context().Done():
		t.Fatal(t.Context().Err())
	}
}

// Pair is a customer's two orders of the same thing with the same card.
type Pair struct {
	Ana           *shoptest.Customer
	SKU           string // of which 10 came in
	First, Second api.Order
}

// DoubleClick orders twice, a second apart, and returns when the second order is on hold. Where a machine is so busy
// that more than 5 s pass, another customer tries.
func DoubleClick(t *testing.T, s *shoptest.Shop) Pair {
	t.Helper()
	const tries = 10
	for range tries {
		p := Pair{Ana: s.Customer(t), SKU: s.Product(t, 5_000, 10)}
		card := s.Card("tok_visa")
		p.First = p.Ana.Buy(t, p.SKU, 1, card)
		if p.First.Status != api.OrderStatusConfirmed {
			t.Fatalf("the first order is %+v", p.First)
		}
		reach(t, p.First.PlacedAt.Add(time.Second))
		p.Second = p.Ana.Buy(t, p.SKU, 1, card)
		if apart := p.Second.PlacedAt.Sub(p.First.PlacedAt); apart >= 5*time.Second {
			t.Logf("the orders came to be %s apart", apart)
			continue
		}
		if p.Second.Status != api.OrderStatusOnHold || p.Second.Reason != events.ReasonDuplicatePurchase ||
			p.Second.NextAction.Type != api.NextActionTypeRelease || p.Second.NextAction.DuplicateOf != p.First.Id {
			t.Fatalf("the second order is %+v", p.Second)
		}
		return p
	}
	t.Fatalf("in %d tries no two orders were less than 5 s apart", tries)
	return Pair{}
}

// duplicateLeft: nobody releases the second order, so its hold ends it.
func duplicateLeft(t *testing.T, s *shoptest.Shop) {
	t.Parallel()
	p := DoubleClick(t, s)
	ana, sku, first, second := p.Ana, p.SKU, p.First, p.Second
	until := second.NextAction.Until
	second = ana.AwaitMoney(t, second, api.FinancialStatusVoided)
	if second.Status != api.OrderStatusCancelled || second.Reason != events.ReasonDuplicatePurchase {
		t.Errorf("the second order is %+v", second)
	}
	for _, e := range told(t, ana, second.Id, api.GetOrderEventsParams{}).Events {
		if e.Type == (events.OrderCancelled{}).EventType() && e.Time.Before(until) {
			t.Errorf("cancelled at %s, and the hold was until %s", e.Time, until)
		}
	}
	if l := s.Ledger(t, second.Payment.Id); len(l) != 1 || l[0].Status != provider.Voided || l[0].Captured != 0 {
		t.Errorf("the provider has %+v", l)
	}
	s.AwaitAvailable(t, sku, 9)
	if first = ana.AwaitMoney(t, first, api.FinancialStatusPaid); first.Status != api.OrderStatusConfirmed {
		t.Errorf("the first order is %s", first.Status)
	}
}

// duplicateReleased: its customer wants both.
func duplicateReleased(t *testing.T, s *shoptest.Shop) {
	t.Parallel()
	p := DoubleClick(t, s)
	ana, sku, second := p.Ana, p.SKU, p.Second
	release := func(who *shoptest.Customer) *api.ReleaseOrderResponse {
		t.Helper()
		res, err := who.ReleaseOrderWithResponse(t.Context(), second.Id, &api.ReleaseOrderParams{IdempotencyKey: s.Key()})
		if err != nil {
			t.Fatal(err)
		}
		return res
	}
	if res := release(s.Customer(t)); res.StatusCode() != http.StatusNotFound {
		t.Errorf("somebody else's release answers %s %s", res.Status(), res.Body)
	}
	if res := release(ana); res.JSON202 == nil {
		t.Fatalf("the customer's release answers %s %s", res.Status(), res.Body)
	}
	if second = ana.AwaitMoney(t, second, api.FinancialStatusPaid); second.Status != api.OrderStatusConfirmed {
		t.Errorf("the released order is %s", second.Status)
	}
	if res := release(ana); res.ApplicationproblemJSON409 == nil || res.ApplicationproblemJSON409.Code != "not_on_hold" {
		t.Errorf("another release answers %s %s", res.Status(), res.Body)
	}
	s.AwaitAvailable(t, sku, 8)
}

// notDuplicates: far enough apart, with another card, or of another amount.
func notDuplicates(t *testing.T, s *shoptest.Shop) {
	t.Parallel()
	sku, ana := s.Product(t, 4_200, 10), s.Customer(t)
	card := s.Card("tok_visa")
	first := ana.Buy(t, sku, 1, card)
	orders := []api.Order{first, ana.Buy(t, sku, 1, s.Card("tok_visa")), ana.Buy(t, sku, 2, card)}
	reach(t, first.PlacedAt.Add(5*time.Second))
	for _, o := range append(orders, ana.Buy(t, sku, 1, card)) {
		if o = ana.AwaitMoney(t, o, api.FinancialStatusPaid); o.Status != api.OrderStatusConfirmed {
			t.Errorf("order %s is %s", o.Id, o.Status)
		}
		for _, e := range told(t, ana, o.Id, api.GetOrderEventsParams{}).Events {
			if e.Type == (events.OrderHeld{}).EventType() {
				t.Errorf("order %s was held", o.Id)
			}
		}
	}
}
