package fraud

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/money"
)

// builtIn judges as a deployment without files does.
var builtIn = Config{}.Judge()

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func authorized(payment string, at time.Duration) events.Recorded {
	return events.Recorded{Event: events.PaymentAuthorized{Purchase: events.Purchase{
		Order: "order-" + payment, Payment: payment, Customer: "ana", PurchasedAt: noon.Add(at),
		CardFingerprint: "card", Amount: money.BRL(1999),
	}}}
}

func voided(payment string, at time.Duration) events.Recorded {
	return events.Recorded{Event: events.PaymentVoided{Purchase: authorized(payment, at).Event.(events.PaymentAuthorized).Purchase}}
}

// verdicts judges events in order and says, per payment, whose duplicate it is ("" when cleared).
func verdicts(t *testing.T, history ...events.Recorded) map[string]string {
	t.Helper()
	of := map[string]string{}
	var recent Profile
	for _, r := range history {
		var said []events.Event
		recent, said = builtIn.Apply(recent, r, false)
		for _, e := range said {
			switch v := e.(type) {
			case events.PurchaseCleared:
				of[v.Payment] = ""
			case events.PurchaseHeld:
				of[v.Payment] = v.DuplicateOfPayment
			}
		}
	}
	return of
}

func TestDuplicates(t *testing.T) {
	t.Parallel()
	const s = time.Second
	for _, c := range []struct {
		name    string
		history []events.Recorded
		want    map[string]string
	}{
		{"4.999 s apart is a duplicate", []events.Recorded{authorized("a", 0), authorized("b", 4999*time.Millisecond)}, map[string]string{"a": "", "b": "a"}},
		{"5.000 s apart is not", []events.Recorded{authorized("a", 0), authorized("b", 5*s)}, map[string]string{"a": "", "b": ""}},
		{"three within 5 s are two", []events.Recorded{authorized("a", 0), authorized("b", 2*s), authorized("c", 4*s)}, map[string]string{"a": "", "b": "a", "c": "a"}},
		{"the earlier offset wins, whatever the times", []events.Recorded{authorized("b", 3*s), authorized("a", 0)}, map[string]string{"b": "", "a": "b"}},
		{"a voided one is forgotten", []events.Recorded{authorized("a", 0), voided("a", 0), authorized("b", s)}, map[string]string{"a": "", "b": ""}},
		{"a duplicate makes duplicates", []events.Recorded{authorized("a", 0), authorized("b", 4*s), authorized("c", 8*s)}, map[string]string{"a": "", "b": "a", "c": "b"}},
		{"one payment, one verdict", []events.Recorded{authorized("a", 0), authorized("a", 0)}, map[string]string{"a": ""}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got := verdicts(t, c.history...)
			if len(got) != len(c.want) {
				t.Fatalf("%d verdicts, want %d: %v", len(got), len(c.want), got)
			}
			for p, of := range c.want {
				if got[p] != of {
					t.Errorf("payment %s is a duplicate of %q, want %q", p, got[p], of)
				}
			}
		})
	}
}

func TestCardAmountAndCurrencyKeepApart(t *testing.T) {
	t.Parallel()
	base := authorized("a", 0).Event.(events.PaymentAuthorized).Purchase
	remembered, _ := builtIn.Apply(Profile{}, authorized("a", 0), false)
	other := []events.Purchase{base, base}
	other[0].Amount.Amount, other[1].Amount.Currency = 2000, "USD"
	for _, p := range other {
		p.Payment = "b"
		_, said := builtIn.Apply(remembered, events.Recorded{Event: events.PaymentAuthorized{Purchase: p}}, false)
		if _, cleared := said[0].(events.PurchaseCleared); !cleared {
			t.Errorf("%+v is taken for %+v", p, base)
		}
	}
	another := base
	if another.CardFingerprint = "another"; Key(another) == Key(base) {
		t.Errorf("%+v has the key of %+v", another, base)
	}
}

// A provider need not say which card it was. The order must not wait for a verdict in vain.
func TestAnUnnamedCardIsComparedWithNothing(t *testing.T) {
	t.Parallel()
	unnamed := func(payment string) events.Recorded {
		r := authorized(payment, 0)
		e := r.Event.(events.PaymentAuthorized)
		e.CardFingerprint = ""
		r.Event = e
		return r
	}
	a, b := card(unnamed("a")), card(unnamed("b"))
	if a == "" || a == b {
		t.Errorf("the keys are %q and %q; each payment needs its own", a, b)
	}
	for _, late := range []bool{false, true} {
		_, said := builtIn.Apply(Profile{}, unnamed("a"), late)
		if len(said) != 1 {
			t.Fatalf("%d verdicts: %v", len(said), said)
		}
		if _, cleared := said[0].(events.PurchaseCleared); !cleared {
			t.Errorf("late %v: %#v, want it cleared", late, said[0])
		}
	}
	if card(events.Recorded{}) != "" {
		t.Error("what is no payment has a key")
	}
}

// Whatever happens to be remembered still: that differs from run to run.
func TestTooLateIsForAPerson(t *testing.T) {
	t.Parallel()
	near, _ := builtIn.Apply(Profile{}, authorized("b", 0), false)
	for _, remembered := range []Profile{{}, near} {
		_, said := builtIn.Apply(remembered, authorized("a", 0), true)
		held, ok := said[0].(events.PurchaseHeld)
		if !ok || held.Reason != events.ReasonFraud || held.Rules[0] != RuleTooLate || held.DuplicateOfPayment != "" {
			t.Fatalf("got %#v, want it held as %s", said[0], RuleTooLate)
		}
	}
}

// What Trim forgets never changes a verdict on a payment that is not late, nor does what a late one leaves behind.
func TestTrimForgetsNothingThatMatters(t *testing.T) {
	t.Parallel()
	judge := builtIn
	judge.Forget = 2 * time.Hour // within reach of the times drawn
	rapid.Check(t, func(t *rapid.T) {
		spread := rapid.SampledFrom([]int{30, 3600, 12 * 3600}).Draw(t, "seconds")
		moment := rapid.IntRange(0, spread*1000)
		amount := rapid.SampledFrom([]int64{1999, 1999, 2500, 900_000})
		var kept, all Profile
		n := rapid.IntRange(1, 40).Draw(t, "n")
		watermark := noon
		for i := range n {
			at := time.Duration(moment.Draw(t, "ms")) * time.Millisecond
			r := paying(fmt.Sprint(i), at, amount.Draw(t, "amount"))
			if w := noon.Add(time.Duration(moment.Draw(t, "watermark")) * time.Millisecond); w.After(watermark) && rapid.Bool().Draw(t, "moves") {
				watermark = w
			}
			if kept = kept.Trim(watermark); kept.Until(judge.Forget).Before(watermark) {
				kept = Profile{}
			}
			late := noon.Add(at).Before(watermark)
			if i > 0 && rapid.IntRange(0, 9).Draw(t, "voids") == 0 {
				r = voided(fmt.Sprint(i-1), at)
			}
			var a, k []events.Event
			all, a = judge.Apply(all, r, late)
			kept, k = judge.Apply(kept, r, late)
			if !reflect.DeepEqual(a, k) {
				t.Fatalf("at %s: %+v with everything, %+v after trimming at %s", at, a, k, watermark)
			}
		}
	})
}

// paying is an authorised payment of an amount.
func paying(payment string, at time.Duration, amount int64) events.Recorded {
	e := authorized(payment, at).Event.(events.PaymentAuthorized)
	e.Amount.Amount = amount
	return events.Recorded{Event: e}
}
