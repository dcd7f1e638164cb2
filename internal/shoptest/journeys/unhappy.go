package journeys

import (
	"context"
	"errors"
	"net/http"
	"testing"

	"github.com/feira-shop/feira/api"
	"github.com/feira-shop/feira/internal/shoptest"
	"github.com/feira-shop/feira/services/payments"
	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/sim/provider"
)

// Ledger fails the test unless the provider has exactly one authorisation of the payment, as wanted.
func Ledger(t *testing.T, s *shoptest.Shop, o api.Order, status provider.Status, captured, refunded int64) {
	t.Helper()
	l := s.Ledger(t, o.Payment.Id)
	if len(l) != 1 || l[0].Status != status || l[0].Captured != captured || l[0].Refunded != refunded || l[0].Amount != o.Total.Amount {
		t.Errorf("the provider has %+v; want one authorisation, %s, captured %d, refunded %d", l, status, captured, refunded)
	}
}

func declined(t *testing.T, s *shoptest.Shop) {
	t.Parallel()
	sku, ana := s.Product(t, 3_000, 5), s.Customer(t)
	for _, behaviour := range []string{"tok_declined", "tok_insufficient_funds", "tok_expired"} {
		o := ana.Buy(t, sku, 1, s.Card(behaviour))
		if o.Status != api.OrderStatusCancelled || o.Reason != events.ReasonPaymentDeclined || o.FinancialStatus != api.FinancialStatusFailed {
			t.Errorf("with %s the order is %+v", behaviour, o)
		}
	}
	s.AwaitAvailable(t, sku, 5)
	ana.AwaitPoints(t, 0)
}

// hiccups: the provider charges and answers too late, or fails twice. Nothing is charged twice.
func hiccups(t *testing.T, s *shoptest.Shop) {
	t.Parallel()
	for _, behaviour := range []string{"tok_timeout_after_charge", "tok_processing_error"} {
		t.Run(behaviour, func(t *testing.T) {
			t.Parallel()
			sku, ana := s.Product(t, 3_000, 5), s.Customer(t)
			o := ana.AwaitMoney(t, ana.Buy(t, sku, 1, s.Card(behaviour)), api.FinancialStatusPaid)
			if o.Status != api.OrderStatusConfirmed {
				t.Errorf("the order is %s", o.Status)
			}
			Ledger(t, s, o, provider.Captured, o.Total.Amount, 0)
		})
	}
}

func captureFails(t *testing.T, s *shoptest.Shop) {
	t.Parallel()
	sku, ana := s.Product(t, 3_000, 5), s.Customer(t)
	o := ana.AwaitMoney(t, ana.Buy(t, sku, 1, s.Card("tok_capture_fails")), api.FinancialStatusVoided)
	if o.Status != api.OrderStatusCancelled || o.Reason != events.ReasonPaymentDeclined {
		t.Errorf("the order is %+v", o)
	}
	s.AwaitAvailable(t, sku, 5)
	Ledger(t, s, o, provider.Voided, 0, 0)
	ana.AwaitPoints(t, 0)
}

func cancelOrder(t *testing.T, c *shoptest.Customer, order, key string) *api.CancelOrderResponse {
	t.Helper()
	res, err := c.CancelOrderWithResponse(t.Context(), order, &api.CancelOrderParams{IdempotencyKey: key}, api.Cancellation{Reason: "changed my mind"})
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// cancelledBefore: while the authorisation is in flight. The void blocks it or gives it back.
func cancelledBefore(t *testing.T, s *shoptest.Shop) {
	t.Parallel()
	sku, ana := s.Product(t, 3_000, 5), s.Customer(t)
	placed := ana.Place(t, s.Key(), ana.Checkout(sku, 1, s.Card("tok_timeout_after_charge")))
	res := cancelOrder(t, ana, placed.Id, s.Key())
	if res.JSON202 == nil || res.JSON202.Status != api.OrderStatusCancelled || res.JSON202.Reason != events.ReasonCustomer {
		t.Fatalf("the cancellation answers %s %s", res.Status(), res.Body)
	}
	o := ana.AwaitMoney(t, *res.JSON202, api.FinancialStatusVoided)
	s.AwaitAvailable(t, sku, 5)
	for _, e := range told(t, ana, o.Id, api.GetOrderEventsParams{}).Events {
		if e.Type == (events.OrderConfirmed{}).EventType() || e.Type == (events.OrderPaid{}).EventType() {
			t.Errorf("the cancelled order has %s", e.Type)
		}
	}
	shoptest.Eventually(t, "payments has voided it", func(context.Context) error {
		for _, r := range s.Events(t, "payments") {
			if e, ok := r.Event.(events.PaymentVoided); ok && e.Order == o.Id {
				return nil
			}
		}
		return errors.New("it has not")
	})
	for _, a := range s.Ledger(t, payments.PaymentID(o.Id)) { // there is none where the void came first
		if a.Status != provider.Voided {
			t.Errorf("the provider has %+v", a)
		}
	}
	ana.AwaitPoints(t, 0)
}

// cancelledAfter: what was paid is given back once, with the stock and the points.
func cancelledAfter(t *testing.T, s *shoptest.Shop) {
	t.Parallel()
	sku, ana, key := s.Product(t, 30_000, 5), s.Customer(t), s.Key()
	o := ana.AwaitMoney(t, ana.Buy(t, sku, 1, s.Card("tok_visa")), api.FinancialStatusPaid)
	ana.AwaitPoints(t, 300)
	if res := cancelOrder(t, ana, o.Id, key); res.JSON202 == nil {
		t.Fatalf("the cancellation answers %s %s", res.Status(), res.Body)
	}
	o = ana.AwaitMoney(t, o, api.FinancialStatusRefunded)
	if o.Status != api.OrderStatusCancelled || o.Refunded != o.Total {
		t.Errorf("the order is %+v", o)
	}
	again := cancelOrder(t, ana, o.Id, key)
	if again.JSON202 == nil || again.HTTPResponse.Header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("the same cancellation answers %s %s", again.Status(), again.Body)
	}
	if res := cancelOrder(t, ana, o.Id, s.Key()); res.ApplicationproblemJSON409 == nil || res.ApplicationproblemJSON409.Code != "not_cancellable" {
		t.Errorf("another cancellation answers %s %s", res.Status(), res.Body)
	}
	s.AwaitAvailable(t, sku, 5)
	ana.AwaitPoints(t, 0)
	Ledger(t, s, o, provider.Captured, o.Total.Amount, o.Total.Amount)
}

func refund(t *testing.T, c *shoptest.Customer, order string, centavos int64, want int) *api.RefundOrderResponse {
	t.Helper()
	body := api.Refund{Reason: "one piece was bruised"}
	if centavos > 0 {
		body.Amount = shoptest.BRL(centavos)
	}
	res, err := c.RefundOrderWithResponse(t.Context(), order, &api.RefundOrderParams{IdempotencyKey: c.Shop.Key()}, body)
	if err != nil {
		t.Fatal(err)
	}
	if res.StatusCode() != want {
		t.Errorf("a refund of %d answers %s %s, want %d", centavos, res.Status(), res.Body, want)
	}
	return res
}

// refunds: first 40 %, then the rest; the points follow, and no more than all goes back.
func refunds(t *testing.T, s *shoptest.Shop) {
	t.Parallel()
	sku, ana := s.Product(t, 10_000, 5), s.Customer(t)
	placed := ana.Place(t, s.Key(), ana.Checkout(sku, 3, s.Card("tok_visa")))
	o := ana.AwaitMoney(t, placed, api.FinancialStatusPaid)
	ana.AwaitPoints(t, 300)
	if p := refund(t, ana, o.Id, 30_001, http.StatusUnprocessableEntity).ApplicationproblemJSON422; p == nil || p.Code != "refund_exceeds_paid" || p.Param != "amount" {
		t.Errorf("more than all: %+v", p)
	}
	refund(t, ana, o.Id, 12_000, http.StatusAccepted)
	o = ana.AwaitMoney(t, o, api.FinancialStatusPartiallyRefunded)
	ana.AwaitPoints(t, 180)
	refund(t, ana, o.Id, 18_001, http.StatusUnprocessableEntity)
	refund(t, ana, o.Id, 0, http.StatusAccepted) // the rest
	o = ana.AwaitMoney(t, o, api.FinancialStatusRefunded)
	ana.AwaitPoints(t, 0)
	refund(t, ana, o.Id, 1, http.StatusUnprocessableEntity)
	if o.Status != api.OrderStatusConfirmed || o.Refunded != o.Total {
		t.Errorf("the order is %+v", o)
	}
	Ledger(t, s, o, provider.Captured, 30_000, 30_000)
}

// refundFails: the card's bank refuses. The order stays paid, and so do its points.
func refundFails(t *testing.T, s *shoptest.Shop) {
	t.Parallel()
	sku, ana := s.Product(t, 30_000, 5), s.Customer(t)
	o := ana.AwaitMoney(t, ana.Buy(t, sku, 1, s.Card("tok_refund_fails")), api.FinancialStatusPaid)
	refund(t, ana, o.Id, 0, http.StatusAccepted)
	failed := func(o api.Order) bool { return o.Version >= 8 } // placed, three notes, confirmed, paid, asked, failed
	o = ana.Await(t, o, "told that the refund failed", failed)
	if o.FinancialStatus != api.FinancialStatusPaid || o.Refunded.Amount != 0 {
		t.Errorf("the order is %+v", o)
	}
	Ledger(t, s, o, provider.Captured, o.Total.Amount, 0)
	ana.AwaitPoints(t, 300)
}
