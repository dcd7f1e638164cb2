package provider

import (
	"testing"

	"pgregory.net/rapid"
)

// TestLedgerKeepsItsRules runs random commands and checks after each: captured ≤ amount, refunded ≤ captured, one
// final state, nothing moves with a refusal, and the row is the sum of its entries.
func TestLedgerKeepsItsRules(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		token := rapid.SampledFrom(behaviours).Draw(t, "behaviour")
		first, p := authorize{Key: "k", Amount: rapid.Int64Range(1, 1000).Draw(t, "amount"), Currency: "BRL", Behaviour: token.name}.
			decide(state{failures: token.failures}, "1")
		if p != nil || first.authorization == nil {
			t.Fatalf("no authorisation: %v %+v", p, first)
		}
		now := *first.authorization
		sums := map[EntryKind]int64{}
		if first.entry != nil {
			sums[first.entry.Kind] += first.entry.Amount
		}
		for range rapid.IntRange(0, 12).Draw(t, "commands") {
			before := now
			eff, p := randomCommand(t, now.ID).decide(state{authorization: &before}, "2")
			if p != nil {
				t.Fatalf("a known authorisation got %v", p)
			}
			if eff.authorization != nil {
				now = *eff.authorization
			}
			if eff.entry != nil {
				sums[eff.entry.Kind] += eff.entry.Amount
			}
			if (eff.entry == nil) != (now == before) {
				t.Fatalf("%+v became %+v with entry %+v", before, now, eff.entry)
			}
			checkLedger(t, before, now, sums)
		}
	})
}

func randomCommand(t *rapid.T, id string) command {
	amount := rapid.Int64Range(1, 1200).Draw(t, "of")
	return rapid.SampledFrom([]command{
		capture{ID: id, Amount: amount}, void{ID: id}, voidByKey{AuthorizationKey: "k"}, refund{ID: id, Amount: amount},
		refund{ID: id, Amount: 1 + amount/10},
	}).Draw(t, "command")
}

func checkLedger(t *rapid.T, before, now Authorization, sums map[EntryKind]int64) {
	final := map[Status]bool{Declined: true, Captured: true, Voided: true}
	b := behaviourNamed(now.Behaviour)
	switch {
	case now.Captured > now.Amount || now.Refunded > now.Captured || now.Refunded < before.Refunded:
		t.Fatalf("more money than there is: %+v", now)
	case final[before.Status] && now.Status != before.Status:
		t.Fatalf("%s became %s", before.Status, now.Status)
	case sums[EntryCapture] != now.Captured || sums[EntryRefund] != now.Refunded:
		t.Fatalf("%+v is not the sum of its entries %v", now, sums)
	case now.Status == Voided && sums[EntryVoid] != now.Amount:
		t.Fatalf("voided %d of %d", sums[EntryVoid], now.Amount)
	case b.capture != "" && now.Captured > 0, b.refund != "" && now.Refunded > 0, b.decline != "" && now.Status != Declined:
		t.Fatalf("%s let %+v happen", b.name, now)
	case now.Disputed != (b.disputed && now.Status == Captured):
		t.Fatalf("disputed is wrong: %+v", now)
	}
}

func TestAReplayIsAnotherRequestWhenAnythingDiffers(t *testing.T) {
	t.Parallel()
	seen := map[string]command{}
	for _, c := range []command{
		capture{"a", 1}, capture{"a", 2}, capture{"b", 1}, refund{"a", 1}, void{"a"}, voidByKey{"a"},
		authorize{Amount: 1, Currency: "BRL", Card: Card{Fingerprint: "x"}}, authorize{Amount: 1, Currency: "USD", Card: Card{Fingerprint: "x"}},
		authorize{Amount: 1, Currency: "BRL", Card: Card{Fingerprint: "y"}},
	} {
		sum, err := fingerprint(c)
		if other, taken := seen[string(sum)]; err != nil || taken {
			t.Errorf("%#v and %#v are taken for one request (%v)", c, other, err)
		}
		seen[string(sum)] = c
	}
}
