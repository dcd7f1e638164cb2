package oracle

import (
	"encoding/json"
	"slices"

	"github.com/feira-shop/feira/services/inventory"
	"github.com/feira-shop/feira/services/orders"
	"github.com/feira-shop/feira/services/payments"
	"github.com/feira-shop/feira/shared/events"
)

// checkStories follows every order through the services and returns those that wait for an answer.
func checkStories(b *books) (open []string) {
	for id, s := range b.stories {
		if s.placed == nil {
			b.fault("orders: order %s is known to others and was never placed", id)
			continue
		}
		checkOnce(b, id, s)
		checkMoney(b, id, s)
		checkNotes(b, id, s)
		if !settled(s) {
			open = append(open, id)
		}
	}
	slices.Sort(open)
	return open
}

// checkOnce finds what happened twice.
func checkOnce(b *books, id string, s *story) {
	for _, e := range []events.Event{
		events.OrderPlaced{}, events.OrderStockReserved{}, events.OrderPaymentAuthorized{}, events.OrderFraudCleared{}, events.OrderHeld{},
		events.OrderConfirmed{}, events.OrderPaid{}, events.OrderPaymentVoided{}, events.OrderCancelled{},
	} {
		if n := s.noted[typeOf(e)]; n > 1 {
			b.fault("orders: order %s has %d × %s", id, n, typeOf(e))
		}
	}
	for _, e := range []events.Event{events.PaymentAuthorized{}, events.PaymentDeclined{}, events.PaymentCaptured{}, events.PaymentVoided{}} {
		if n := s.said[typeOf(e)]; n > 1 {
			b.fault("payments: order %s has %d × %s", id, n, typeOf(e))
		}
	}
	if s.answers > 1 {
		b.fault("inventory: order %s was answered %d times", id, s.answers)
	}
	if s.verdicts > 1 {
		b.fault("fraud: order %s has %d verdicts", id, s.verdicts)
	}
}

// checkMoney holds the order's sums and its payment to each other.
func checkMoney(b *books, id string, s *story) {
	p := s.placed
	var sum int64
	for _, l := range p.Lines {
		sum += l.Total.Amount
	}
	if sum != p.Subtotal.Amount || sum+p.Shipping.Amount-p.Discount.Amount != p.Total.Amount {
		b.fault("orders: order %s does not add up: lines %d, subtotal %d, total %d", id, sum, p.Subtotal.Amount, p.Total.Amount)
	}
	if len(s.said) > 0 && s.amount != p.Total.Amount {
		b.fault("payments: order %s is paid with %d, its total is %d", id, s.amount, p.Total.Amount)
	}
	captured := s.said[typeOf(events.PaymentCaptured{})] > 0
	if captured && s.said[typeOf(events.PaymentVoided{})] > 0 {
		b.fault("payments: order %s was captured and voided", id)
	}
	if captured && s.noted[typeOf(events.OrderConfirmed{})] == 0 {
		b.fault("payments: order %s was captured and never confirmed", id)
	}
	if s.refunded > p.Total.Amount || s.refunded > 0 && !captured {
		b.fault("payments: order %s was refunded %d of %d captured", id, s.refunded, s.order.Captured)
	}
	if s.order.Returned != s.refunded && s.order.Returned > s.refunded {
		b.fault("orders: order %s notes %d refunded, payments refunded %d", id, s.order.Returned, s.refunded)
	}
}

// checkNotes finds notes of what never happened.
func checkNotes(b *books, id string, s *story) {
	for _, c := range []struct {
		noted    events.Event
		happened bool
	}{
		{events.OrderStockReserved{}, s.answers > 0 && s.stock.Status != inventory.Refused},
		{events.OrderPaymentAuthorized{}, s.said[typeOf(events.PaymentAuthorized{})] > 0},
		{events.OrderFraudCleared{}, s.cleared},
		{events.OrderHeld{}, s.verdicts > 0 && !s.cleared},
		{events.OrderPaid{}, s.said[typeOf(events.PaymentCaptured{})] > 0},
		{events.OrderPaymentVoided{}, s.said[typeOf(events.PaymentVoided{})] > 0},
	} {
		if s.noted[typeOf(c.noted)] > 0 && !c.happened {
			b.fault("orders: order %s notes %s, which its owner never said", id, typeOf(c.noted))
		}
	}
	if s.noted[typeOf(events.OrderConfirmed{})] > 0 && (!s.order.Stock || s.order.Payment == nil || !s.order.Cleared) {
		b.fault("orders: order %s was confirmed without stock, payment and fraud", id)
	}
}

// settled is what events.md calls so: confirmed and paid, or cancelled with its stock and its money given back.
func settled(s *story) bool {
	stock := s.stock.Status
	switch s.order.Status {
	case orders.Confirmed:
		paid := s.payment.Status == payments.Taken || s.payment.Status == payments.GivenBack // all of it by refunds
		return s.order.Captured > 0 && stock == inventory.Reserved && paid &&
			s.payment.InFlight == nil && len(s.payment.Queue) == 0 && s.order.Returned == s.refunded && !refundPending(s.order)
	case orders.Cancelled:
		money := s.payment.Status
		atRest := money == payments.GivenUp || money == payments.GivenBack || money == payments.Refused
		return atRest && (stock == inventory.Released || stock == inventory.Refused || stock == inventory.Closed) &&
			s.order.Returned == s.refunded && voidNoted(s)
	}
	return false
}

func refundPending(o orders.Order) bool {
	for _, r := range o.Refunds {
		if r.State == "requested" {
			return true
		}
	}
	return false
}

// voidNoted reports whether the order knows that what was authorised was voided.
func voidNoted(s *story) bool {
	return s.order.Financial != orders.Authorized && s.order.Financial != orders.Paid
}

func totals(b *books) Totals {
	t := Totals{ByStatus: map[string]int{}, ByReason: map[string]int{}}
	for _, s := range b.stories {
		if s.placed == nil {
			continue
		}
		t.ByStatus[string(s.order.Status)]++
		if s.order.Status == orders.Cancelled {
			t.ByReason[s.order.Reason]++
		}
		t.Held += s.noted[typeOf(events.OrderHeld{})]
		t.Released += s.noted[typeOf(events.OrderReleased{})]
		t.Captured += s.order.Captured
		t.Refunded += s.refunded
		t.Voided += s.said[typeOf(events.PaymentVoided{})]
		t.Declined += s.said[typeOf(events.PaymentDeclined{})]
		t.Authorized += s.said[typeOf(events.PaymentAuthorized{})]
	}
	return t
}

// orderOf reads which order a private event of payments is about.
func orderOf(r events.Recorded) string {
	var about struct {
		Order string `json:"order"`
	}
	if json.Unmarshal(r.Data, &about) != nil {
		return ""
	}
	return about.Order
}
