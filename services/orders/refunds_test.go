package orders

import (
	"testing"

	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/money"
)

// Cancelled and then captured, or the reverse: refunded once.
func TestACaptureInFlightIsRefunded(t *testing.T) {
	t.Parallel()
	gone := given(reserved, authorized, cleared, confirmed, byAna("c1"))
	gone.When(noteCaptured).Then(t, paid)
	gone.Given(paid).When(NoteRefunded{payment, ofCancellation, total, total}).Then(t, back(ofCancellation, 8869, 8869))
	gone.Given(paid, back(ofCancellation, 8869, 8869)).When(NoteRefunded{payment, ofCancellation, total, total}).ThenNothing(t)
	gone.When(NoteCaptureFailed{payment, "expired"}).ThenNothing(t)
	gone.When(NoteVoided{payment}).Then(t, voided)
	if o := now(reserved, authorized, cleared, confirmed, byAna("c1"), paid, back(ofCancellation, 8869, 8869)); o.Status != Cancelled || o.Financial != Refunded {
		t.Errorf("got %s, %s", o.Status, o.Financial)
	}
}

func TestRefunds(t *testing.T) {
	t.Parallel()
	bought := given(reserved, authorized, cleared, confirmed, paid)
	part := Refund{Command: "x", By: ana, Reason: "broken", Amount: money.BRL(3000)}
	all := Refund{Command: "y", By: ana, Reason: "broken"}
	bought.When(part).Then(t, asked("x", 3000))
	bought.When(all).Then(t, asked("y", 8869))
	bought.Given(asked("x", 3000)).When(part).ThenNothing(t)
	bought.Given(asked("x", 3000)).When(all).Then(t, asked("y", 5869))
	bought.Given(asked("y", 8869)).When(all).ThenNothing(t)
	bought.Given(asked("x", 3000)).When(NoteRefunded{payment, "x", money.BRL(3000), money.BRL(3000)}).Then(t, back("x", 3000, 3000))
	bought.Given(asked("x", 3000), back("x", 3000, 3000)).When(part).ThenNothing(t)
	bought.Given(asked("x", 3000), back("x", 3000, 3000)).When(all).Then(t, asked("y", 5869))

	paidAll := []events.Event{reserved, authorized, cleared, confirmed, paid}
	for want, o := range map[Financial]Order{
		Paid:              now(append(paidAll[:5:5], asked("x", 3000))...),
		PartiallyRefunded: now(append(paidAll[:5:5], asked("x", 3000), back("x", 3000, 3000))...),
		Refunded:          now(append(paidAll[:5:5], asked("y", 8869), back("y", 8869, 8869))...),
	} {
		if o.Financial != want || o.Status != Confirmed {
			t.Errorf("got %s, %s, want %s", o.Status, o.Financial, want)
		}
	}
}

func TestRefundsHaveLimits(t *testing.T) {
	t.Parallel()
	bought := given(reserved, authorized, cleared, confirmed, paid)
	wish := func(amount money.Money) Refund {
		return Refund{Command: "x", By: ana, Reason: "broken", Amount: amount}
	}
	for amount, left := range map[int64]int64{8870: 8869, -1: 8869, 0: 8869} {
		bought.When(wish(money.BRL(amount))).ThenError(t, &RefundError{Order: id, Asked: money.BRL(amount), Left: money.BRL(left)})
	}
	bought.Given(asked("a", 8869)).When(wish(money.BRL(1))).ThenError(t, &RefundError{Order: id, Asked: money.BRL(1), Left: money.BRL(0)})
	bought.Given(asked("a", 8869)).When(wish(money.Money{})).ThenError(t, &RefundError{Order: id, Asked: money.BRL(0), Left: money.BRL(0)})
	bought.When(wish(money.New(1, "USD"))).ThenError(t, &money.MismatchError{Left: "BRL", Right: "USD"})
	given(reserved, authorized, cleared, confirmed).When(wish(money.BRL(1))).ThenError(t, &TransitionError{Order: id, Wish: "refund", Status: Confirmed})
	bought.Given(byAna("c1")).When(wish(money.BRL(1))).ThenError(t, &TransitionError{Order: id, Wish: "refund", Status: Cancelled})
}

func TestAFailedRefundLeavesTheMoney(t *testing.T) {
	t.Parallel()
	failure := func(command string, amount int64) events.OrderRefundFailed {
		return events.OrderRefundFailed{Order: id, Payment: payment, Command: command, Amount: money.BRL(amount), Code: "no"}
	}
	bought := given(reserved, authorized, cleared, confirmed, paid)
	note := NoteRefundFailed{Payment: payment, Command: "x", Code: "no", Amount: money.BRL(3000)}
	bought.Given(asked("x", 3000)).When(note).Then(t, failure("x", 3000))
	bought.Given(asked("x", 3000), failure("x", 3000)).When(note).ThenNothing(t)
	bought.Given(asked("x", 3000), failure("x", 3000)).When(Refund{Command: "y", By: ana, Reason: "broken"}).Then(t, asked("y", 8869))
	bought.Given(asked("x", 3000), failure("x", 3000)).When(Refund{Command: "x", By: ana, Reason: "broken", Amount: money.BRL(3000)}).ThenNothing(t)

	// That of a cancellation is noted once, too.
	note.Command, note.Amount = ofCancellation, total
	gone := bought.Given(byAna("c1"))
	gone.When(note).Then(t, failure(ofCancellation, 8869))
	gone.Given(failure(ofCancellation, 8869)).When(note).ThenNothing(t)
}

// The bank would not take back what a cancelled order was paid. An operator asks again, as often as it takes.
func TestAnOperatorAsksAgainForTheMoneyOfACancelledOrder(t *testing.T) {
	t.Parallel()
	failed := func(command string, amount int64) events.Event {
		return events.OrderRefundFailed{Order: id, Payment: payment, Command: command, Amount: money.BRL(amount), Code: "no"}
	}
	again := func(command string, amount int64) Refund {
		return Refund{Command: command, By: ana, Reason: "broken", Operator: true, Amount: money.BRL(amount)}
	}
	no := &TransitionError{Order: id, Wish: "refund", Status: Cancelled}
	onItsWay := given(reserved, authorized, cleared, confirmed, paid, byAna("c1"))
	onItsWay.When(again("y", 8869)).ThenError(t, no)

	kept := onItsWay.Given(failed(ofCancellation, 8869))
	kept.When(again("y", 8869)).Then(t, asked("y", 8869))
	kept.When(Refund{Command: "y", By: ana, Reason: "broken", Operator: true}).Then(t, asked("y", 8869)) // all of it
	kept.When(again("y", 3000)).Then(t, asked("y", 3000))
	kept.When(again("y", 8870)).ThenError(t, &RefundError{Order: id, Asked: money.BRL(8870), Left: money.BRL(8869)})
	kept.When(again("c1", 8869)).ThenError(t, &KeyReusedError{Order: id})
	kept.When(Refund{Command: "y", By: ana, Reason: "broken"}).ThenError(t, no) // a customer

	twice := kept.Given(asked("y", 8869))
	twice.When(again("y", 8869)).ThenNothing(t)
	twice.When(again("z", 8869)).ThenError(t, no)
	twice.Given(failed("y", 8869)).When(again("z", 8869)).Then(t, asked("z", 8869))
	twice.Given(back("y", 8869, 8869)).When(again("z", 1)).ThenError(t, no)
	kept.Given(asked("y", 3000), back("y", 3000, 3000)).When(again("z", 5869)).Then(t, asked("z", 5869))
}
