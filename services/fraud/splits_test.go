package fraud

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/operator"
)

// trade is a history of some cards: out of order, some of it late, some voided, some from the future.
func trade(random *rand.Rand, n int) []events.Recorded {
	var history []events.Recorded
	var last time.Duration
	for i := range n {
		at := time.Duration(i)*30*time.Second - time.Duration(random.IntN(90))*time.Second
		if i%5 == 0 {
			at = last + time.Duration(random.IntN(4))*time.Second // soon after the one before
		}
		last = at
		switch random.IntN(12) {
		case 0:
			at -= time.Hour
		case 1:
			at += time.Hour
		}
		amount := int64(1999 + 100*random.IntN(3))
		if random.IntN(10) == 0 {
			amount = 700_000
		}
		r := paying(fmt.Sprint(i), at, amount)
		e := r.Event.(events.PaymentAuthorized)
		e.CardFingerprint = fmt.Sprint("card-", random.IntN(3))
		r.Event, r.RecordedAt = e, noon.Add(time.Duration(i)*30*time.Second)
		history = append(history, r)
		if random.IntN(8) == 0 {
			history = append(history, events.Recorded{Event: events.PaymentVoided{Purchase: e.Purchase}, RecordedAt: r.RecordedAt})
		}
	}
	return history
}

// verdicts are all that were said, by payment.
func (r *running) verdicts(t *testing.T) map[string]events.Event {
	t.Helper()
	all := map[string]events.Event{}
	err := r.store.Each(t.Context(), 0, func(e events.Recorded) error {
		v, _ := verdictOf(e.Event)
		if all[v.Payment] != nil {
			t.Errorf("two verdicts on %s", v.Payment)
		}
		all[v.Payment] = e.Event
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// However a history is split into batches, and wherever a process takes over, the verdicts are those of the one that
// remembers everything; that one is told only which payments came too late.
func TestVerdictsDoNotDependOnBatchesOrRestarts(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	fired := map[string]int{}
	for round := range uint64(3) {
		random := rand.New(rand.NewPCG(seed, round))
		r := run(t, 3*time.Minute)
		history := trade(random, 250)
		for left := history; len(left) > 0; {
			n := min(len(left), 1+random.IntN(40))
			r.apply(t, left[:n]...)
			left = left[n:]
			if random.IntN(4) == 0 {
				again := cards(Config{Disorder: 3 * time.Minute}.defaults()).Handler(r.store).(operator.Stateful)
				if err := again.Restore(t.Context(), r.store.Pool(), operator.Claim{Topic: events.Payments.Name}); err != nil {
					t.Fatal(err)
				}
				r.handler = again
			}
		}
		said, replay := r.verdicts(t), NewReplay(builtIn)
		for _, h := range history {
			e, ok := h.Event.(events.PaymentAuthorized)
			again := replay.Apply(h, ok && TooLate(said[e.Payment]))
			if !ok {
				continue
			}
			if len(again) != 1 || fmt.Sprintf("%+v", again[0]) != fmt.Sprintf("%+v", said[e.Payment]) || !Agree(said[e.Payment], again[0]) {
				t.Errorf("payment %s: %+v, want %+v", e.Payment, said[e.Payment], again[0])
			}
			v, _ := verdictOf(again[0])
			for _, rule := range v.Rules {
				fired[rule]++
			}
		}
	}
	if len(fired) < 5 || fired[RuleTooLate] == 0 || fired[RuleDuplicate] == 0 || fired[RuleUnusualAmount] == 0 {
		t.Errorf("only these rules fired: %v", fired)
	}
}

// Verdicts of other thresholds agree in what no threshold changes, and in nothing less.
func TestVerdictsOfOtherThresholdsAreComparedInPart(t *testing.T) {
	t.Parallel()
	held := events.PurchaseHeld{Verdict: events.Verdict{Payment: "b", Score: 100, Rules: []string{RuleDuplicate}, Thresholds: "x", Model: "m"}, DuplicateOfPayment: "a"}
	same := held
	if !Agree(held, same) {
		t.Error("a verdict does not agree with itself")
	}
	for name, c := range map[string]struct {
		change func(*events.PurchaseHeld)
		agree  bool
	}{
		"another score":                          {func(h *events.PurchaseHeld) { h.Score = 60 }, false},
		"another score, by other thresholds":     {func(h *events.PurchaseHeld) { h.Score, h.Thresholds = 60, "y" }, true},
		"another score, by another model":        {func(h *events.PurchaseHeld) { h.Score, h.Model = 60, "n" }, true},
		"of another purchase, by others":         {func(h *events.PurchaseHeld) { h.DuplicateOfPayment, h.Thresholds = "c", "y" }, false},
		"of none, by others":                     {func(h *events.PurchaseHeld) { h.DuplicateOfPayment, h.Thresholds = "", "y" }, false},
		"on another payment, by others":          {func(h *events.PurchaseHeld) { h.Payment, h.Thresholds = "c", "y" }, false},
		"too late, by others":                    {func(h *events.PurchaseHeld) { h.Rules, h.Thresholds = []string{RuleTooLate}, "y" }, false},
		"from before there were versions at all": {func(h *events.PurchaseHeld) { h.Thresholds, h.Model = "", "" }, true},
	} {
		other := held
		c.change(&other)
		if Agree(held, other) != c.agree || Agree(other, held) != c.agree {
			t.Errorf("%s: agrees %v", name, !c.agree)
		}
	}
	cleared := events.PurchaseCleared{Verdict: events.Verdict{Payment: "b", Thresholds: "y"}}
	if Agree(held, cleared) {
		t.Error("a duplicate agrees with what is cleared")
	}
}
