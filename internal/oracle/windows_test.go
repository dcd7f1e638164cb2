package oracle

import (
	"testing"
	"time"

	"github.com/feira-shop/feira/services/analytics"
	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/money"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func happened(id string, at time.Time, e events.Event) events.Recorded {
	return events.Recorded{Meta: events.Meta{ID: id, Time: at}, Type: e.EventType(), Event: e}
}

// What is late counts as met, and in no window.
func TestWhatIsLateIsInNoWindow(t *testing.T) {
	t.Parallel()
	w := newWindows(analytics.Config{})
	w.late[spendOperator], w.late[topOperator] = map[string]bool{"late": true}, map[string]bool{"late": true}
	purchase := events.Purchase{Customer: "ana", Amount: money.BRL(100)}
	for _, id := range []string{"a", "late", "b"} {
		w.payment(happened(id, noon.Add(4*time.Minute), events.PaymentCaptured{Purchase: purchase}))
		w.order(happened(id, noon, events.OrderConfirmed{Lines: []events.Quantity{{SKU: "TEA", Quantity: 3}}}))
	}
	w.payment(happened("c", noon.Add(5*time.Minute), events.PaymentRefunded{Purchase: purchase, Refunded: money.BRL(40)}))
	w.payment(happened("d", noon, events.PaymentAuthorized{Purchase: purchase}))
	first, second := spendWindow{"ana", "BRL", noon}, spendWindow{"ana", "BRL", noon.Add(5 * time.Minute)}
	if len(w.spend) != 2 || w.spend[first] != (analytics.Spend{Payments: 2, Captured: 200}) || w.spend[second] != (analytics.Spend{Refunds: 1, Refunded: 40}) {
		t.Errorf("the windows are %+v", w.spend)
	}
	if w.received[spendOperator] != 4 || w.received[topOperator] != 3 {
		t.Errorf("%v events were met", w.received)
	}
	if len(w.top) != 12 || w.top[noon]["TEA"].Quantity != 6 || w.top[noon.Add(-55*time.Minute)]["TEA"].Orders != 2 {
		t.Errorf("the rankings are %v", w.top)
	}
}

// Windows begin at multiples of their length since 1970, whatever the length.
func TestWindowsAreAlignedTo1970(t *testing.T) {
	t.Parallel()
	for length, want := range map[time.Duration]int64{5 * time.Minute: 1711899900, 10 * time.Second: 1711900000, 7 * time.Second: 1711899994} {
		w := newWindows(analytics.Config{Window: length})
		if got := w.start(time.Unix(1711900000, 999_999_999)); got.UnixNano() != want*1e9 {
			t.Errorf("of %s: %d.%09d, want %d", length, got.Unix(), got.Nanosecond(), want)
		}
	}
}
