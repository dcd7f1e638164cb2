package saga

import (
	"sync"
	"testing"

	"github.com/feira-shop/feira/services/orders"
	"github.com/feira-shop/feira/services/payments"
	"github.com/feira-shop/feira/shared/events"
)

// endings counts how orders ended over all stories: a way that no story takes would be a way that nothing proves.
type endings struct {
	mu sync.Mutex
	n  map[string]int
}

func (e *endings) add(w *world) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.n == nil {
		e.n = map[string]int{}
	}
	for _, id := range w.placed {
		o := w.orders.states[orders.Stream(id)]
		e.n[string(o.Status)+" "+o.Reason]++
		e.n[string(o.Status)+" "+string(o.Financial)]++
		if o.Hold != nil && o.Cleared {
			e.n["released"]++
		}
		if o.Refunds[payments.CommandCancellation].State != "" {
			e.n["refund refused"]++
		}
		if o.Refunds["again"].State == "done" {
			e.n["refunded after all"]++
		}
		if w.reservations.states["reservation-"+id].Status == "" {
			e.n["never reserved"]++
		}
	}
}

func (e *endings) demandAll(t *testing.T) {
	t.Helper()
	t.Log(e.n)
	for _, way := range []string{
		"confirmed paid", "confirmed partially_refunded", "confirmed refunded", "released", "refund refused", "refunded after all",
		"cancelled voided", "cancelled failed", "cancelled refunded",
		"cancelled " + events.ReasonOutOfStock, "cancelled " + events.ReasonPaymentDeclined,
		"cancelled " + events.ReasonDuplicatePurchase, "cancelled " + events.ReasonFraud,
		"cancelled " + events.ReasonDeadline, "cancelled " + events.ReasonCustomer,
	} {
		if e.n[way] == 0 {
			t.Errorf("no order ended %q", way)
		}
	}
}
