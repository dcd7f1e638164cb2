package oracle

import (
	"testing"
	"time"

	"github.com/feira-shop/feira/services/inventory"
	"github.com/feira-shop/feira/services/orders"
	"github.com/feira-shop/feira/services/payments"
	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/money"
)

// A cancelled order whose money the bank would not take back is open until a person has asked for it again and got it.
func TestACancelledOrderIsOpenWhileTheShopKeepsItsMoney(t *testing.T) {
	t.Parallel()
	const order, total = "o1", 5500
	purchase := events.Purchase{Order: order, Payment: "p1", Customer: "ana", PurchasedAt: time.Unix(1, 0), Amount: money.BRL(total)}
	s := &story{stock: inventory.Reservation{Order: order, Status: inventory.Released}}
	happens := func(noted, said []events.Event) {
		for _, e := range noted {
			s.order = orders.Evolve(s.order, e)
		}
		for _, e := range said {
			s.payment = payments.Evolve(s.payment, e)
			if r, ok := e.(events.PaymentRefunded); ok {
				s.refunded += r.Refunded.Amount
			}
		}
	}
	demand := func(want bool, when string) {
		t.Helper()
		if settled(s) != want {
			t.Errorf("%s: settled is %v, want %v", when, !want, want)
		}
	}
	placed := events.OrderPlaced{Order: order, Customer: "ana", Total: money.BRL(total), PlacedAt: purchase.PurchasedAt}
	failed := func(command string) (events.Event, events.Event) {
		return events.OrderRefundFailed{Order: order, Payment: "p1", Command: command, Amount: money.BRL(total), Code: "no"},
			events.PaymentRefundFailed{Purchase: purchase, Command: command, Refund: money.BRL(total), Code: "no"}
	}
	asks := func(command string) []events.Event {
		return events.List(payments.RefundQueued{Order: order, Command: command, Amount: money.BRL(total)},
			payments.RefundRequested{Order: order, Command: command, Amount: money.BRL(total), Key: command})
	}

	happens(events.List(placed, events.OrderConfirmed{Order: order}, events.OrderPaid{Order: order, Amount: money.BRL(total)},
		events.OrderCancelled{Order: order, Reason: events.ReasonCustomer}),
		events.List(payments.AuthorizationRequested{Purchase: purchase}, events.PaymentCaptured{Purchase: purchase},
			payments.CancellationNoted{Order: order}, payments.RefundRequested{Order: order, Command: payments.CommandCancellation, Amount: money.BRL(total)}))
	demand(false, "while the refund of the cancellation is on its way")
	noted, said := failed(payments.CommandCancellation)
	happens(events.List(noted), events.List(said))
	demand(false, "after it failed")
	happens(events.List(events.OrderRefundRequested{Order: order, Command: "again", Amount: money.BRL(total)}), asks("again"))
	demand(false, "while another is on its way")
	noted, said = failed("again")
	happens(events.List(noted), events.List(said))
	demand(false, "after that one failed too")
	happens(events.List(events.OrderRefundRequested{Order: order, Command: "more", Amount: money.BRL(total)}), asks("more"))
	happens(nil, events.List(events.PaymentRefunded{Purchase: purchase, Command: "more", Refunded: money.BRL(total), RefundedSoFar: money.BRL(total)}))
	demand(false, "before the order knows that it came back")
	happens(events.List(events.OrderRefunded{Order: order, Command: "more", Amount: money.BRL(total), RefundedSoFar: money.BRL(total)}), nil)
	demand(true, "once it came back")
}
