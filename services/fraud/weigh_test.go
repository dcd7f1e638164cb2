package fraud

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/money"
)

// limits are low ones, all of them, and without a model.
func limits() *Policy {
	return &Policy{ThresholdsVersion: "tests", Thresholds: Thresholds{
		HoldAt:  50,
		Minute:  VelocityLimits{Effect: Effect{Weight: 60}, Payments: 3, Sums: map[string]int64{"BRL": 10_000}},
		Hour:    VelocityLimits{Effect: Effect{Weight: 40}, Payments: 5, Sums: map[string]int64{"BRL": 20_000}},
		Unusual: UnusualLimits{Effect: Effect{Weight: 30}, Deviations: 4, Known: 5},
		New:     NewLimits{Effect: Effect{Weight: 20}, Hours: 1, Amounts: map[string]int64{"BRL": 5_000}},
		Model:   ModelLimits{Probability: 900},
	}}
}

// paid is one purchase of a history.
type paid struct {
	at     time.Duration
	amount int64
}

// every is a purchase of about an amount at each interval; no two of them are the same.
func every(interval time.Duration, n int, amount int64) []paid {
	list := make([]paid, n)
	for i := range list {
		list[i] = paid{time.Duration(i) * interval, amount + int64(i)}
	}
	return list
}

func verdictOf(e events.Event) (v events.Verdict, reason string) {
	switch e := e.(type) {
	case events.PurchaseCleared:
		v = e.Verdict
	case events.PurchaseHeld:
		v, reason = e.Verdict, e.Reason
	}
	return v, reason
}

// last judges a history and returns the verdict on its last purchase.
func last(p *Policy, history []paid) events.Event {
	judge := Judge{Policy: p, Forget: DefaultForget}
	var c Profile
	var said []events.Event
	for i, h := range history {
		c, said = judge.Apply(c, paying(fmt.Sprint(i), h.at, h.amount), false)
	}
	return said[0]
}

func TestRules(t *testing.T) {
	t.Parallel()
	const s, m, h = time.Second, time.Minute, time.Hour
	usual := every(2*h, 6, 1_000) // mean 1002.5, and a quarter of it for a deviation
	for _, c := range []struct {
		name    string
		history []paid
		rules   string
		score   int
		reason  string
		why     string
	}{
		{"one purchase", []paid{{0, 100}}, "", 0, "", ""},
		{"three within a minute", every(10*s, 3, 100), "", 0, "", ""},
		{"four within a minute", every(10*s, 4, 100), "velocity_minute", 60, "fraud", "4 payments on the card within a minute, more than 3"},
		{"four within a minute, the last one earliest", []paid{{30 * s, 100}, {31 * s, 101}, {32 * s, 102}, {0, 103}}, "velocity_minute", 60, "fraud", "4 payments"},
		{"four, the first a minute before", []paid{{0, 100}, {m, 101}, {m + s, 102}, {m + 2*s, 103}}, "", 0, "", ""},
		{"the most within a minute", []paid{{0, 4_000}, {10 * s, 6_000 - 1_001}, {20 * s, 1_001}}, "", 0, "", ""},
		{"more within a minute", []paid{{0, 4_000}, {10 * s, 5_000}, {20 * s, 1_001}}, "velocity_minute", 60, "fraud", "100.01 BRL on the card within a minute, more than 100.00 BRL"},
		{"five within an hour", every(10*m, 5, 100), "", 0, "", ""},
		{"six within an hour", every(10*m, 6, 100), "velocity_hour", 40, "", "6 payments on the card within an hour, more than 5"},
		{"six, the first an hour before", append([]paid{{0, 99}}, slices.Collect(shifted(every(10*m, 5, 100), h))...), "", 0, "", ""},
		{"more within an hour", []paid{{0, 4_900}, {10 * m, 4_901}, {20 * m, 4_902}, {30 * m, 4_903}, {40 * m, 4_904}}, "velocity_hour", 40, "", "245.10 BRL on the card within an hour, more than 200.00 BRL"},
		{"a usual amount", append(slices.Clone(usual), paid{12 * h, 2_000}), "", 0, "", ""},
		{"far above", append(slices.Clone(usual), paid{12 * h, 2_006}), "unusual_amount", 30, "", "20.06 BRL is 4.0 deviations from the mean of 10.02 BRL over 6 purchases, more than 4"},
		{"far above, of too few", append(every(2*h, 4, 1_000), paid{12 * h, 2_006}), "", 0, "", ""},
		{"the most on a new card", []paid{{0, 5_000}}, "", 0, "", ""},
		{"more on a new card", []paid{{0, 5_001}}, "new_card_high_amount", 20, "", "50.01 BRL on a card that was never seen before, more than 50.00 BRL"},
		{"more on a card that is still new", []paid{{0, 100}, {59 * m, 5_001}}, "new_card_high_amount", 20, "", "first seen 3540 s before"},
		{"more on a card that is not new", []paid{{0, 100}, {h, 5_001}}, "", 0, "", ""},
		{"weights add up", []paid{{0, 5_001}, {10 * s, 5_002}}, "velocity_minute new_card_high_amount", 80, "fraud", ""},
		{"a double click alone is the customer's to release", []paid{{0, 100}, {s, 100}}, "duplicate_purchase", 100, "duplicate_purchase", "1.000 s from another purchase of 1.00 BRL on the same card"},
		{"a double click among too many is not", append(every(10*s, 3, 100), paid{21 * s, 102}), "duplicate_purchase velocity_minute", 100, "fraud", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			v, reason := verdictOf(last(limits(), c.history))
			if strings.Join(v.Rules, " ") != c.rules || v.Score != c.score || reason != c.reason || v.Thresholds != "tests" || v.Model != "" {
				t.Errorf("%+v, held as %q; want %q, score %d, held as %q", v, reason, c.rules, c.score, c.reason)
			}
			if c.why != "" && !strings.Contains(v.Reasons[0].Why, c.why) {
				t.Errorf("it says %q, want %q", v.Reasons[0].Why, c.why)
			}
			for i, r := range v.Reasons {
				if r.Rule != v.Rules[i] || r.Why == "" {
					t.Errorf("reason %d of %v is %+v", i, v.Rules, r)
				}
			}
		})
	}
}

func shifted(list []paid, by time.Duration) func(func(paid) bool) {
	return func(yield func(paid) bool) {
		for _, p := range list {
			if p.at += by; !yield(p) {
				return
			}
		}
	}
}

func TestAHardRuleHoldsWhateverTheScore(t *testing.T) {
	t.Parallel()
	p := limits()
	p.Thresholds.New.Hard = true
	if _, reason := verdictOf(last(p, []paid{{0, 5_001}})); reason != events.ReasonFraud {
		t.Errorf("held as %q", reason)
	}
}

// A model without a weight is shown; with one, it decides with the rules.
func TestTheModelDecidesAsMuchAsItWeighs(t *testing.T) {
	t.Parallel()
	p := limits()
	p.Model, p.ModelVersion = &Model{
		Means: make([]float64, len(FeatureNames)), Deviations: ones(), Coefficients: make([]float64, len(FeatureNames)), Intercept: 3,
	}, "sure"
	for weight, want := range map[int]string{0: "", 50: events.ReasonFraud} {
		p.Thresholds.Model.Weight = weight
		v, reason := verdictOf(last(p, []paid{{0, 100}}))
		if reason != want || v.Score != weight || v.ModelScore != 953 || v.Model != "sure" || v.Reasons[0].Why != "the model gives 95.3 % for fraud, 90.0 % or more" {
			t.Errorf("weight %d: %+v, held as %q", weight, v, reason)
		}
	}
	p.Thresholds.Model.Probability = 954
	if v, _ := verdictOf(last(p, []paid{{0, 100}})); len(v.Rules) > 0 || v.ModelScore != 953 {
		t.Errorf("below its threshold: %+v", v)
	}
}

func ones() []float64 {
	all := make([]float64, len(FeatureNames))
	for i := range all {
		all[i] = 1
	}
	return all
}

// A voided payment counts for nothing but the card's habits.
func TestAVoidedPaymentLeavesTheSums(t *testing.T) {
	t.Parallel()
	judge := Judge{Policy: limits(), Forget: DefaultForget}
	var c Profile
	for i, h := range every(10*time.Second, 3, 3_000) {
		r := paying(fmt.Sprint(i), h.at, h.amount)
		c, _ = judge.Apply(c, r, false)
		gone := r.Event.(events.PaymentAuthorized).Purchase
		c, _ = judge.Apply(c, events.Recorded{Event: events.PaymentVoided{Purchase: gone}}, i == 1) // late or not
	}
	if len(c.Recent)+len(c.Minute)+len(c.Hour) != 0 || c.Amounts[0].Count != 3 {
		t.Errorf("it is left: %+v", c)
	}
	if _, said := judge.Apply(c, paying("last", 40*time.Second, 3_000), false); said[0].EventType() != (events.PurchaseCleared{}).EventType() {
		t.Errorf("%+v", said[0])
	}
}

// One theft does not make the next one usual; a new habit is learned within some purchases.
func TestHabitsAreLearnedSlowly(t *testing.T) {
	t.Parallel()
	history := append(every(2*time.Hour, 8, 1_000), paid{20 * time.Hour, 50_000}, paid{22 * time.Hour, 50_000})
	if v, _ := verdictOf(last(limits(), history)); !slices.Contains(v.Rules, RuleUnusualAmount) {
		t.Errorf("the second high amount is usual: %+v", v)
	}
	for i := range 40 {
		history = append(history, paid{time.Duration(24+2*i) * time.Hour, 4_000 + int64(i)})
	}
	if v, _ := verdictOf(last(limits(), history)); len(v.Rules) != 0 {
		t.Errorf("after forty purchases it is still unusual: %+v", v)
	}
}

// A card that was not seen for long is a new one.
func TestACardIsForgotten(t *testing.T) {
	t.Parallel()
	judge := Judge{Policy: limits(), Forget: LeastForget}
	c, _ := judge.Apply(Profile{}, paying("a", 0, 100), false)
	for at, want := range map[time.Duration]string{LeastForget: "", LeastForget + time.Nanosecond: RuleNewCard} {
		after, said := judge.Apply(c, paying("b", at, 5_001), false)
		v, _ := verdictOf(said[0])
		if strings.Join(v.Rules, " ") != want || want != "" && (after.First != nanos(noon.Add(at)) || after.Amounts[0].Count != 1) {
			t.Errorf("%s later: %+v %+v, want %q", at, v, after, want)
		}
	}
	if until := c.Until(judge.Forget); !until.Equal(noon.Add(LeastForget)) {
		t.Errorf("it is kept until %s", until)
	}
}

// What a profile holds is bounded, however many payments there are, and little once they are past.
func TestAProfileIsBounded(t *testing.T) {
	t.Parallel()
	const disorder = 5 * time.Minute
	var c Profile
	for i := range 20_000 {
		at := time.Duration(i) * time.Second
		c, _ = builtIn.Apply(c.Trim(noon.Add(at-disorder)), paying(fmt.Sprint(i), at, int64(i)), false)
		if len(c.Recent) > maxRecent || len(c.Minute) > 75 || len(c.Hour) > 67 || len(c.Amounts) > 1 {
			t.Fatalf("%d purchases, buckets %d and %d, %d currencies", len(c.Recent), len(c.Minute), len(c.Hour), len(c.Amounts))
		}
	}
	if c = c.Trim(noon.Add(24 * time.Hour)); len(c.Recent)+len(c.Minute)+len(c.Hour) != 0 || c.Last == 0 {
		t.Errorf("a day later: %+v", c)
	}
	if text, err := json.Marshal(c); err != nil || len(text) > 150 {
		t.Errorf("habits take %d bytes: %s, %v", len(text), text, err)
	}
}

// The newest are kept: of a fast card, those that the next purchase may repeat.
func TestOfTooManyTheNewestAreRemembered(t *testing.T) {
	t.Parallel()
	var c Profile
	for i := range maxRecent + 10 {
		c, _ = builtIn.Apply(c, paying(fmt.Sprint(i), time.Duration(i)*20*time.Millisecond, int64(1000+i)), false)
	}
	oldest := int64(10)
	if len(c.Recent) != maxRecent || c.Recent[0].Amount != 1000+oldest {
		t.Fatalf("%d are remembered, from %+v", len(c.Recent), c.Recent[0])
	}
	_, said := builtIn.Apply(c, paying("again", 5200*time.Millisecond, 1000+oldest+1), false)
	if held, ok := said[0].(events.PurchaseHeld); !ok || held.DuplicateOfPayment != "11" {
		t.Errorf("%+v", said[0])
	}
}

// The state before stays as it was until the batch is committed.
func TestAProfileNeverChanges(t *testing.T) {
	t.Parallel()
	var c Profile
	for i, h := range every(time.Second, 5, 100) {
		c, _ = builtIn.Apply(c, paying(fmt.Sprint(i), h.at, h.amount), false)
	}
	before := fmt.Sprintf("%+v", c)
	for range 2 { // the second attempt of a batch meets the same state
		d, _ := builtIn.Apply(c, paying("x", 5*time.Second, 777), false)
		d, _ = builtIn.Apply(d, voided("1", time.Second), false)
		d.Trim(noon.Add(time.Hour))
		if now := fmt.Sprintf("%+v", c); now != before {
			t.Fatalf("it was %s, and is %s", before, now)
		}
	}
}

func TestPricesAreThoseOfMoney(t *testing.T) {
	t.Parallel()
	for _, code := range []string{"BRL", "JPY", "KWD", "XXQ"} {
		for _, amount := range []int64{0, 5, 99, 100, 1999, 123_456_789, -5} {
			if got, want := string(price(nil, amount, code)), money.New(amount, code).String(); got != want && amount >= 0 {
				t.Errorf("%q, want %q", got, want)
			}
		}
	}
}

// What a late payment teaches would depend on whether its card was forgotten before it came.
func TestALatePaymentTeachesNoHabit(t *testing.T) {
	t.Parallel()
	c, _ := builtIn.Apply(Profile{}, paying("late", 0, 100), true)
	if c.First != 0 || c.Last != 0 || len(c.Amounts) != 0 || len(c.Recent) != 1 || len(c.Minute) != 1 || len(c.Hour) != 1 {
		t.Errorf("%+v", c)
	}
}

// The oldest bucket that a payment at the watermark is compared with stays, and the one before goes.
func TestBucketsAreTrimmedToTheWindow(t *testing.T) {
	t.Parallel()
	for _, s := range []scale{quick, slow} {
		at := nanos(noon)
		p := Purchase{At: at, Amount: 1, Currency: currencyOf("BRL")}
		bs := Buckets{
			{Index: s.index(at) - s.window, Payments: 1, Sum: 10, Currency: currencyOf("BRL")},
			{Index: s.index(at) - s.window + 1, Payments: 1, Sum: 100, Currency: currencyOf("BRL")},
			{Index: s.index(at), Payments: 1, Sum: 1000, Currency: currencyOf("USD")},
		}
		left := bs.trim(at, s)
		if len(left) != 2 || left[0] != bs[1] || left.speed(p, s) != bs.speed(p, s) || bs.speed(p, s) != (speed{3, 101}) {
			t.Errorf("%+v are left, speeds %+v and %+v", left, left.speed(p, s), bs.speed(p, s))
		}
	}
}
