package oracle

import (
	"testing"

	"github.com/feira-shop/feira/services/analytics"
	"github.com/feira-shop/feira/services/payments"
	"github.com/feira-shop/feira/shared/money"
	simprovider "github.com/feira-shop/feira/sim/provider"
)

// What the provider may say of a payment that payments is done with.
func TestTheProviderHoldsWhatPaymentsBelieves(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		status  payments.Status
		is      simprovider.Status
		differs bool
	}{
		{"voided", payments.GivenUp, simprovider.Voided, false},
		{"a void that was answered before the refusal", payments.GivenUp, simprovider.Declined, false},
		{"money is held for nothing", payments.GivenUp, simprovider.Authorized, true},
		{"refused", payments.Refused, simprovider.Declined, false},
		{"refused here, held there", payments.Refused, simprovider.Authorized, true},
		{"reserved here, refused there", payments.Reserved, simprovider.Declined, true},
		{"taken here, held there", payments.Taken, simprovider.Authorized, true},
	} {
		b := newBooks(analytics.Config{})
		s := &story{payment: payments.Payment{Status: c.status}}
		s.payment.Purchase.Amount = money.BRL(1000)
		compareLedger(b, s, simprovider.Authorization{Status: c.is, Amount: 1000, Currency: "BRL"})
		if differs := len(b.faults) > 0; differs != c.differs {
			t.Errorf("%s: %q", c.name, b.faults)
		}
	}
}
