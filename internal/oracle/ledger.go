package oracle

import (
	"context"
	"fmt"
	"strings"

	"github.com/feira-shop/feira/services/payments"
	"github.com/feira-shop/feira/shared/events"
	simprovider "github.com/feira-shop/feira/sim/provider"
)

// checkLedger compares the provider's books with what payments believes.
func (e *examiner) checkLedger(ctx context.Context, b *books) error {
	if e.pools[provider] == nil || e.stores["payments"] == nil {
		return nil
	}
	byPayment := map[string]*story{}
	for _, s := range b.stories {
		if id := s.payment.Purchase.Payment; id != "" {
			byPayment[id] = s
		}
	}
	moved, err := e.moved(ctx)
	if err != nil {
		return err
	}
	err = simprovider.Ledger(ctx, e.pools[provider], func(a simprovider.Authorization) error {
		compareEntries(b, a, moved[a.ID])
		payment, _, _ := strings.Cut(a.Key, "/")
		s := byPayment[payment]
		if s == nil {
			b.fault("provider: authorisation %s has the key %s of no payment", a.ID, a.Key)
			return nil
		}
		delete(byPayment, payment) // a second authorisation of the same payment is of none
		compareLedger(b, s, a)
		return nil
	})
	if err != nil {
		return fmt.Errorf("verify the provider's ledger: %w", err)
	}
	for payment, s := range byPayment {
		if s.said[typeOf(events.PaymentAuthorized{})]+s.said[typeOf(events.PaymentDeclined{})] > 0 {
			b.fault("provider: payment %s is %s and the provider does not know it", payment, s.payment.Status)
		}
	}
	return nil
}

// moves are the sums of an authorisation's entries in the provider's ledger.
type moves struct {
	authorized, captured, refunded int64
	voids                          int
}

func (e *examiner) moved(ctx context.Context) (map[string]moves, error) {
	sums := map[string]moves{}
	err := simprovider.Entries(ctx, e.pools[provider], func(entry simprovider.Entry) error {
		m := sums[entry.Authorization]
		switch entry.Kind {
		case simprovider.EntryAuthorize:
			m.authorized += entry.Amount
		case simprovider.EntryCapture:
			m.captured += entry.Amount
		case simprovider.EntryRefund:
			m.refunded += entry.Amount
		case simprovider.EntryVoid:
			m.voids++
		}
		sums[entry.Authorization] = m
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("verify the provider's entries: %w", err)
	}
	return sums, nil
}

// compareEntries holds what an authorisation stands at to what was ever done to it.
func compareEntries(b *books, a simprovider.Authorization, got moves) {
	want := moves{captured: a.Captured, refunded: a.Refunded}
	if a.Status != simprovider.Declined {
		want.authorized = a.Amount
	}
	if a.Status == simprovider.Voided {
		want.voids = 1
	}
	if got != want {
		b.fault("provider: the entries of authorisation %s add up to %+v, it stands at %+v", a.ID, got, want)
	}
}

// compareLedger knows what the provider's status must be once a payment is at rest; while a request is on its way
// both are right.
func compareLedger(b *books, s *story, a simprovider.Authorization) {
	p := s.payment
	want := map[payments.Status]string{
		payments.Reserved: "authorized", payments.Refused: "declined", payments.Taken: "captured",
		payments.GivenUp: "voided", payments.GivenBack: "captured",
	}[p.Status]
	if want == "" || p.InFlight != nil {
		return
	}
	if p.Status == payments.GivenUp && a.Status == simprovider.Declined {
		want = "declined" // cancelled meanwhile: the void was answered before the refusal, and there was nothing to give back
	}
	captured := int64(0)
	if want == "captured" {
		captured = p.Purchase.Amount.Amount
	}
	if string(a.Status) != want || a.Captured != captured || a.Refunded != p.Refunded {
		b.fault("provider: payment %s is %s, captured %d, refunded %d; payments has it %s, captured %d, refunded %d",
			p.Purchase.Payment, a.Status, a.Captured, a.Refunded, p.Status, captured, p.Refunded)
	}
	if a.Amount != p.Purchase.Amount.Amount || a.Currency != p.Purchase.Amount.Currency {
		b.fault("provider: payment %s is over %d %s, payments has %s", p.Purchase.Payment, a.Amount, a.Currency, p.Purchase.Amount)
	}
}
