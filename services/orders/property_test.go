package orders

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/feira-shop/feira/shared/decider/decidertest"
	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/money"
)

// drawCommand gives any command, whether it fits or not.
func drawCommand(t *rapid.T, o Order) any {
	pick := func(of ...any) any { return of[rapid.IntRange(0, len(of)-1).Draw(t, "pick")] }
	key := rapid.SampledFrom([]string{"k1", "k2", "k3", ofCancellation}).Draw(t, "key")
	amount := money.BRL(rapid.Int64Range(0, 10_000).Draw(t, "amount"))
	at := noon.Add(time.Duration(rapid.IntRange(0, 180).Draw(t, "minutes")) * time.Minute)
	if !o.Exists() {
		return order
	}
	switch rapid.IntRange(0, 3).Draw(t, "who") {
	case 0: // people and the timer
		return pick(order, Cancel{Command: key, By: ana, Detail: key}, Release{Command: key, By: ana, Now: at.Add(-time.Minute), ConfirmBy: at},
			Release{Command: key, By: "op", Operator: true, Now: at.Add(-time.Minute), ConfirmBy: at}, Expire{at},
			Refund{Command: key, By: ana, Reason: "broken", Amount: amount}, Refund{Command: key, By: ana, Reason: "broken"}, Refund{Command: key, By: "op", Reason: "broken", Operator: true})
	case 1: // what brings it on its way
		return pick(NoteReserved{}, noteAuthorized, noteCleared, noteCaptured)
	case 2: // what does not
		return pick(NoteRefused{}, NoteDeclined{payment, "no"}, NoteCaptureFailed{payment, "no"}, noteHeld,
			NoteHeld{Payment: payment, Reason: events.ReasonFraud, Until: at}, NoteVoided{payment})
	}
	if state, asked := o.Refunds[key]; asked { // money goes back as it was asked for
		amount = money.BRL(state.Amount)
		soFar := money.BRL(min(o.Captured, o.Returned+state.Amount))
		return pick(NoteRefunded{payment, key, amount, soFar}, NoteRefundFailed{Payment: payment, Command: key, Code: "no", Amount: amount})
	}
	left := money.BRL(max(0, o.Captured-o.Returned))
	return pick(NoteRefunded{payment, ofCancellation, left, money.BRL(o.Captured)},
		NoteRefundFailed{Payment: payment, Command: ofCancellation, Code: "no", Amount: left})
}

func TestTheOrderObeysTheLawsOfDeciders(t *testing.T) {
	t.Parallel()
	decidertest.Laws(t, Rules, drawCommand)
}

// What must hold of every order, whatever it hears and in whatever order.
func TestAnOrderNeverContradictsItself(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var o Order
		count := map[string]int{}
		for range rapid.IntRange(1, 40).Draw(t, "commands") {
			cmd := drawCommand(t, o)
			happened, err := Decide(o, cmd)
			if err != nil {
				mustBeAPerson(t, cmd, err)
				continue
			}
			for _, e := range happened {
				before := o
				o = Evolve(o, e)
				count[e.EventType()]++
				checkStep(t, before, e)
			}
			checkOrder(t, o)
		}
		for _, e := range []events.Event{
			events.OrderPlaced{}, events.OrderStockReserved{}, events.OrderPaymentAuthorized{}, events.OrderFraudCleared{},
			events.OrderHeld{}, events.OrderReleased{}, events.OrderConfirmed{}, events.OrderPaid{}, events.OrderPaymentVoided{},
			events.OrderCancelled{},
		} {
			if count[e.EventType()] > 1 {
				t.Fatalf("%s happened %d times", e.EventType(), count[e.EventType()])
			}
		}
	})
}

// mustBeAPerson: a fact from another service is never refused, or its event would be parked.
func mustBeAPerson(t *rapid.T, cmd any, err error) {
	switch cmd.(type) {
	case Place, Cancel, Release, Refund:
	default:
		t.Fatalf("%T%+v is refused: %v", cmd, cmd, err)
	}
}

func checkStep(t *rapid.T, before Order, e events.Event) {
	switch e := e.(type) {
	case events.OrderConfirmed:
		if before.Status != Placed || !before.Stock || !before.Cleared || before.Payment == nil {
			t.Fatalf("confirmed as it was %s, stock %v, cleared %v, payment %v", before.Status, before.Stock, before.Cleared, before.Payment)
		}
	case events.OrderCancelled:
		if e.Reason == events.ReasonDeadline && before.Status != Placed {
			t.Fatalf("ended by its deadline as it was %s", before.Status)
		}
		if before.Status == Cancelled {
			t.Fatal("cancelled twice")
		}
	case events.OrderRefundRequested:
		if e.Amount.Amount <= 0 || e.Amount.Amount > before.Refundable() {
			t.Fatalf("a refund of %d was granted, %d were left", e.Amount.Amount, before.Refundable())
		}
	}
}

func checkOrder(t *rapid.T, o Order) {
	switch {
	case o.Open() != (o.DueAt > 0):
		t.Fatalf("%s and due at %d", o.Status, o.DueAt)
	case o.Returned > o.Captured:
		t.Fatalf("%d of %d refunded", o.Returned, o.Captured)
	case o.Captured > 0 && o.Financial != Paid && o.Financial != PartiallyRefunded && o.Financial != Refunded:
		t.Fatalf("%d were captured and the money is %s", o.Captured, o.Financial)
	case o.Status == OnHold && o.Hold == nil:
		t.Fatal("held for no reason")
	}
}

// Sum of lines + shipping − discount = total, for 100,000 random orders.
func TestEveryTotalAddsUp(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	sold := map[string]product{}
	for i := range 50 {
		sku := fmt.Sprintf("SKU-%d", i)
		sold[sku] = product{SKU: sku, Name: sku, Currency: "BRL", Amount: 1 + r.Int64N(100_000_000), Active: true}
	}
	for range 100_000 {
		wanted := make([]events.Quantity, 1+r.IntN(8))
		for i := range wanted {
			wanted[i] = events.Quantity{SKU: fmt.Sprintf("SKU-%d", r.IntN(50)), Quantity: 1 + r.Int64N(10_000)}
		}
		lines, err := priceLines(wanted, sold)
		if err != nil {
			t.Fatal(err)
		}
		fee, err := shippingFor(lines)
		if err != nil {
			t.Fatal(err)
		}
		happened, err := Decide(Order{}, Place{Order: id, Lines: lines, Shipping: fee, Discount: money.BRL(r.Int64N(2))})
		if err != nil {
			t.Fatalf("%+v: %v", lines, err)
		}
		e := happened[0].(events.OrderPlaced)
		var sum int64
		for i, l := range e.Lines {
			if l.Total.Amount != sold[wanted[i].SKU].Amount*wanted[i].Quantity {
				t.Fatalf("line %+v of %+v", l, sold[wanted[i].SKU])
			}
			sum += l.Total.Amount
		}
		if e.Subtotal.Amount != sum || e.Total.Amount != sum+e.Shipping.Amount-e.Discount.Amount {
			t.Fatalf("%d lines of %d + %d − %d make %d", len(lines), sum, e.Shipping.Amount, e.Discount.Amount, e.Total.Amount)
		}
	}
}
