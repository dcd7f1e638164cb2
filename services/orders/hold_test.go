package orders

import (
	"testing"
	"time"

	"github.com/feira-shop/feira/shared/events"
)

// Way 4.
func TestADoubleClickIsHeld(t *testing.T) {
	t.Parallel()
	given(reserved, authorized).When(noteHeld).Then(t, held)
	given().When(noteHeld).Then(t, held) // before the payment is noted
	given(held).When(noteHeld).ThenNothing(t)
	given(held).When(NoteReserved{}).Then(t, reserved)
	given(held).When(noteAuthorized).Then(t, authorized)
	given(held, letGo).When(noteHeld).ThenNothing(t)
	given(reserved, authorized, cleared, confirmed).When(noteHeld).ThenNothing(t)
	given(byAna("c1")).When(noteHeld).ThenNothing(t)

	o := now(reserved, authorized, held)
	if o.Status != OnHold || o.Reason != events.ReasonDuplicatePurchase || o.Hold.DuplicateOf != "other" || o.DueAt != held.Until.UnixMicro() {
		t.Errorf("a held order is %+v", o)
	}
}

func TestAHeldOrderIsReleased(t *testing.T) {
	t.Parallel()
	wish := Release{Command: "r1", By: ana, ConfirmBy: letGo.ConfirmBy}
	given(reserved, authorized, held).When(wish).Then(t, letGo, confirmed)
	given(authorized, held).When(wish).Then(t, letGo)
	given(authorized, held, letGo).When(NoteReserved{}).Then(t, reserved, confirmed)
	given(reserved, held, letGo).When(noteAuthorized).Then(t, authorized, confirmed)
	given(reserved, authorized, held, letGo, confirmed).When(wish).ThenNothing(t)
	given(held, letGo, byAna("c1")).When(wish).ThenNothing(t)
	wish.Command = "r2"
	given(held, letGo).When(wish).ThenError(t, &TransitionError{Order: id, Wish: "release", Status: Placed})
	given().When(wish).ThenError(t, &TransitionError{Order: id, Wish: "release", Status: Placed})

	// The timer looks once a second, and a hold ends when it ends.
	wish.Now = held.Until.Add(-time.Microsecond)
	justInTime := letGo
	justInTime.Command = wish.Command
	given(authorized, held).When(wish).Then(t, justInTime)
	wish.Now = held.Until
	given(authorized, held).When(wish).ThenError(t, &HoldEndedError{Order: id, Until: held.Until})

	// A new deadline, and no hold any more.
	if o := now(held, letGo); o.DueAt != letGo.ConfirmBy.UnixMicro() || o.Reason != "" || !o.Cleared {
		t.Errorf("a released order is %+v", o)
	}
}

func TestOnlyAnOperatorReleasesWhatIsHeldForFraud(t *testing.T) {
	t.Parallel()
	wish := Release{Command: "r1", By: ana, ConfirmBy: letGo.ConfirmBy}
	given(suspicious).When(wish).ThenError(t, &ForbiddenError{Order: id, Reason: events.ReasonFraud})
	wish.Operator = true
	given(suspicious).When(wish).Then(t, letGo)
}

func TestAHoldEnds(t *testing.T) {
	t.Parallel()
	just, before := Expire{held.Until}, Expire{held.Until.Add(-time.Microsecond)}
	given(authorized, held).When(before).ThenNothing(t) // though the deadline has passed: a hold suspends it
	given(authorized, held).When(just).Then(t, because(events.ReasonDuplicatePurchase, "orders", "nobody released it in time"))
	given(suspicious).When(just).Then(t, because(events.ReasonFraud, "orders", "nobody released it in time"))
	given(held, letGo).When(just).ThenNothing(t)
	given(held, letGo).When(Expire{letGo.ConfirmBy}).Then(t, because(events.ReasonDeadline, "orders", ""))
}
