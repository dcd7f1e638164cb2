package payments

import (
	"slices"
	"testing"
	"time"

	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/sim/provider"
)

func TestOrdersArePaid(t *testing.T) {
	t.Parallel()
	s := newShop(t, 0)
	s.hear(order("ok", "tok_visa_a"), order("no", "tok_insufficient_funds_b"), order("hiccup", "tok_processing_error_c"))
	p := s.until("ok", Reserved)
	if p.Purchase.CardFingerprint == "" || p.Purchase.EventKey() != p.Purchase.CardFingerprint {
		t.Errorf("the card is not known: %+v", p.Purchase)
	}
	s.hear(confirmed("ok"))
	s.until("ok", Taken)
	s.hear(refundRequested("ok", "r1", 1500), refundRequested("ok", "r2", 5000), refundRequested("ok", "r1", 1500), refundRequested("ok", "r3", 4000))
	s.until("ok", GivenBack)
	s.until("no", Refused)
	s.until("hiccup", Reserved)
	s.quiet()
	s.expect("ok", "authorized", "captured", "refunded", "refund_failed", "refunded")
	s.expect("no", "declined")
	s.expect("hiccup", "authorized")
	if a := s.ledger()[PaymentID("ok")]; a.Captured != 5500 || a.Refunded != 5500 {
		t.Errorf("the provider says %+v", a)
	}
}

// A provider that charges and answers too late is asked again with the same key: one charge.
func TestChargedOnce(t *testing.T) {
	t.Parallel()
	s := newShop(t, 300*time.Millisecond)
	s.hear(order("o1", "tok_timeout_after_charge_a"))
	s.until("o1", Reserved)
	s.quiet()
	s.expect("o1", "authorized")
	var attempt int
	must(t, s.db.Pool.QueryRow(t.Context(), "select attempt from river_job").Scan(&attempt))
	if attempt < 2 || len(s.ledger()) != 1 {
		t.Errorf("%d attempts, %d authorisations", attempt, len(s.ledger()))
	}
}

// Cancelled while the authorisation is in flight: the void goes by its key and takes back what was charged.
func TestCancelWhileAuthorizing(t *testing.T) {
	t.Parallel()
	s := newShop(t, 5*time.Second)
	s.hear(order("o1", "tok_timeout_after_charge_a"))
	deadline := time.Now().Add(patience)
	for len(s.ledger()) == 0 { // charged, and the answer does not come
		if time.Now().After(deadline) {
			t.Fatal("never charged")
		}
		<-time.After(5 * time.Millisecond)
	}
	s.hear(orderCancelled("o1"))
	p := s.until("o1", GivenUp)
	if p.Purchase.CardFingerprint == "" {
		t.Error("the void did not say which card it was")
	}
	s.quiet()
	s.expect("o1", "voided")
	if a := s.ledger()[PaymentID("o1")]; a.Status != provider.Voided {
		t.Errorf("the provider still holds %+v", a)
	}
}

// Cancelled before the provider was ever reached: the void blocks the authorisation, whichever comes first.
func TestCancelWhileTheProviderIsDown(t *testing.T) {
	t.Parallel()
	s := newShop(t, 0)
	s.down.Store(true)
	s.hear(order("o1", "tok_visa_a"), order("o2", "tok_visa_b"))
	s.hear(orderCancelled("o1"), orderCancelled("o3"))
	s.hear(order("o3", "tok_visa_c"))
	s.until("o3", GivenUp) // never asked, so answered at once
	s.down.Store(false)
	s.until("o1", GivenUp)
	s.until("o2", Reserved)
	s.quiet()
	s.expect("o3", "voided")
	ledger := s.ledger()
	if a, there := ledger[PaymentID("o1")]; there && a.Status != provider.Voided {
		t.Errorf("the provider holds %+v", a)
	}
	if _, there := ledger[PaymentID("o3")]; there {
		t.Error("an order that was cancelled before it was placed was charged")
	}
}

func TestCaptureAndRefundThatAreRefused(t *testing.T) {
	t.Parallel()
	s := newShop(t, 0)
	s.hear(order("o1", "tok_capture_fails_a"), order("o2", "tok_refund_fails_b"))
	s.until("o1", Reserved)
	s.until("o2", Reserved)
	s.hear(confirmed("o1"), confirmed("o2"))
	s.until("o1", CaptureFailed)
	s.until("o2", Taken)
	s.hear(orderCancelled("o1"), orderCancelled("o2"))
	s.until("o1", GivenUp)
	s.quiet()
	s.expect("o1", "authorized", "capture_failed", "voided")
	s.expect("o2", "authorized", "captured", "refund_failed")
}

// TestServiceHearsAndKeeps: routes, private events and kinds of jobs that a release must not lose.
func TestServiceHearsAndKeeps(t *testing.T) {
	t.Parallel()
	def := Service(Config{})
	types := slices.Sorted(slices.Values(def.Operators[0].Types))
	want := []string{"shop.feira.order.cancelled.v1", "shop.feira.order.confirmed.v1", "shop.feira.order.placed.v1", "shop.feira.order.refund_requested.v1"}
	if !slices.Equal(types, want) || def.Operators[0].Name != "payments.pay" {
		t.Errorf("%s hears %v", def.Operators[0].Name, types)
	}
	var kinds []string
	for _, j := range def.Jobs {
		kinds = append(kinds, j.Kind)
	}
	if !slices.Equal(kinds, []string{"payment_authorize", "payment_capture", "payment_void", "payment_refund"}) {
		t.Errorf("kinds of jobs: %v", kinds)
	}
	for _, e := range def.Private {
		if _, public := events.TopicOf(e.EventType()); public {
			t.Errorf("%s is private, but published", e.EventType())
		}
	}
}
