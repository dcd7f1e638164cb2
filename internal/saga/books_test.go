package saga

import (
	"github.com/feira-shop/feira/services/inventory"
	"github.com/feira-shop/feira/services/loyalty"
	"github.com/feira-shop/feira/services/orders"
	"github.com/feira-shop/feira/services/payments"
	"github.com/feira-shop/feira/shared/events"
)

// checkBooks compares what the services keep with each other and with the bank.
func (w *world) checkBooks() {
	reserved := map[string]int64{}
	verdicts := w.count(events.Fraud)
	for _, id := range w.placed {
		o := w.orders.states[orders.Stream(id)]
		p := w.payments.states[payments.StreamOf(id)]
		r := w.reservations.states[inventory.Stream(id)]
		a := w.bank.accounts[id]
		if a == nil {
			a = &account{}
		}
		w.checkEnd(o, a)
		w.checkMoney(o, p, a)
		w.checkStock(o, r, reserved)
		w.checkPoints(id, a)
		if authorized := w.authorizations(id); verdicts[id] != authorized {
			w.t.Fatalf("order %s: %d authorisations, %d verdicts", id, authorized, verdicts[id])
		}
	}
	for sku, s := range w.shelves {
		if s.Reserved != reserved[sku] {
			w.t.Fatalf("%s: the shelf says %d reserved, the reservations %d", sku, s.Reserved, reserved[sku])
		}
	}
}

// checkAwaited demands that no open order waits without end, and that nothing is awaited of any other.
func (w *world) checkAwaited() {
	for _, id := range w.placed {
		if o := w.orders.states[orders.Stream(id)]; o.Open() != (o.DueAt > 0) {
			w.t.Fatalf("it is %s, and due at %d: %+v", o.Status, o.DueAt, o)
		}
	}
}

// checkEnd demands that an order is settled, and nothing left over.
func (w *world) checkEnd(o orders.Order, a *account) {
	left := a.captured - a.refunded
	switch {
	case o.Status == orders.Confirmed && a.captured > 0:
	case o.Status == orders.Cancelled && a.captured == 0 && (!a.authorized || a.voided):
	case o.Status == orders.Cancelled && a.captured > 0 && left == 0:
	default:
		w.t.Fatalf("order is not settled: %+v\nbank: %+v", o, a)
	}
	for key, refund := range o.Refunds {
		if refund.State == "requested" {
			w.t.Fatalf("refund %s was never answered: %+v", key, o)
		}
	}
}

func (w *world) checkMoney(o orders.Order, p payments.Payment, a *account) {
	want := orders.Paid
	switch {
	case a.captured == 0 && o.Reason == events.ReasonPaymentDeclined && !a.authorized:
		want = orders.Failed
	case a.captured == 0:
		want = orders.Voided
	case a.refunded == a.captured:
		want = orders.Refunded
	case a.refunded > 0:
		want = orders.PartiallyRefunded
	}
	if o.Financial != want || o.Captured != a.captured || o.Returned != a.refunded || a.captured > 0 && a.captured != o.Total.Amount {
		w.t.Fatalf("order says %s, %d captured, %d returned; it is %s\norder: %+v\nbank: %+v", o.Financial, o.Captured, o.Returned, want, o, a)
	}
	if p.Refunded != a.refunded || p.Kept() != a.captured-a.refunded || p.InFlight != nil || len(p.Queue) > 0 {
		w.t.Fatalf("payment: %+v\nbank: %+v", p, a)
	}
}

func (w *world) checkStock(o orders.Order, r inventory.Reservation, reserved map[string]int64) {
	if (o.Status == orders.Confirmed) != (r.Status == inventory.Reserved) {
		w.t.Fatalf("order is %s (%s), its reservation %s", o.Status, o.Reason, r.Status)
	}
	if r.Status == inventory.Reserved {
		for _, l := range r.Lines {
			reserved[l.SKU] += l.Quantity
		}
	}
}

func (w *world) checkPoints(order string, a *account) {
	points := w.accounts.states[loyalty.Stream("ana")].Orders[order]
	earned, kept := a.captured/100, int64(0)
	if a.captured > 0 {
		kept = earned * (a.captured - a.refunded) / a.captured
	}
	if points.Earned != earned || points.Earned-points.Reversed != kept {
		w.t.Fatalf("order %s: %+v points, but %d of %d should be kept; bank: %+v", order, points, kept, earned, a)
	}
}

// count says how many events a topic has of each order.
func (w *world) count(topic events.Topic) map[string]int {
	n := map[string]int{}
	for _, partition := range w.logs[topic.Name] {
		for _, r := range partition {
			n[r.Key]++
		}
	}
	return n
}

// authorizations says how often an order's payment was authorised.
func (w *world) authorizations(order string) (n int) {
	for _, partition := range w.logs[events.Payments.Name] {
		for _, r := range partition {
			if e, ok := r.Event.(events.PaymentAuthorized); ok && e.Order == order {
				n++
			}
		}
	}
	return n
}
