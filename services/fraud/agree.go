package fraud

import (
	"reflect"

	"github.com/feira-shop/feira/shared/events"
)

// Agree reports whether a verdict is the one that judging the same payments anew gives, as far as the two can be
// compared. With the same thresholds and the same model, they are the same in everything. Otherwise what they have in
// common is what no threshold changes: which purchase is repeated, if any, and whether it came too late to be judged.
func Agree(said, again events.Event) bool {
	a, b := about(said), about(again)
	if a.verdict.Payment != b.verdict.Payment || a.repeats != b.repeats || a.late != b.late {
		return false
	}
	if a.verdict.Thresholds != b.verdict.Thresholds || a.verdict.Model != b.verdict.Model {
		return true
	}
	return reflect.DeepEqual(said, again)
}

// opinion is what verdicts are compared by.
type opinion struct {
	verdict events.Verdict
	repeats string // payment
	late    bool
}

func about(e events.Event) opinion {
	switch v := e.(type) {
	case events.PurchaseCleared:
		return opinion{verdict: v.Verdict}
	case events.PurchaseHeld:
		return opinion{verdict: v.Verdict, repeats: v.DuplicateOfPayment, late: TooLate(v)}
	}
	return opinion{}
}

// TooLate reports whether a verdict says that its payment came too late to be judged.
func TooLate(e events.Event) bool {
	held, ok := e.(events.PurchaseHeld)
	return ok && len(held.Rules) == 1 && held.Rules[0] == RuleTooLate
}
