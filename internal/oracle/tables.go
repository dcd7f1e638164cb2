package oracle

import (
	"context"
	"fmt"
	"reflect"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/feira-shop/feira/services/inventory"
	"github.com/feira-shop/feira/services/payments"
	"github.com/feira-shop/feira/shared/events"
	simprovider "github.com/feira-shop/feira/sim/provider"
)

// checkStock compares the shelves with what inventory's events leave on them.
func (e *examiner) checkStock(ctx context.Context, b *books) error {
	pool := e.pools["inventory"]
	if pool == nil {
		return nil
	}
	rows, err := pool.Query(ctx, `select sku, on_hand, reserved from stock`)
	if err != nil {
		return fmt.Errorf("verify the stock: %w", err)
	}
	found := inventory.Shelves{}
	var sku string
	var s inventory.Shelf
	if _, err := pgx.ForEachRow(rows, []any{&sku, &s.OnHand, &s.Reserved}, func() error { found[sku] = s; return nil }); err != nil {
		return fmt.Errorf("verify the stock: %w", err)
	}
	for sku, want := range b.shelves {
		if found[sku] != want {
			b.fault("inventory: the shelf of %s has %+v, its events give %+v", sku, found[sku], want)
		}
		if want.Available() < 0 || want.Reserved < 0 {
			b.fault("inventory: the shelf of %s is below nothing: %+v", sku, want)
		}
		delete(found, sku)
	}
	for sku := range found {
		b.fault("inventory: the shelf of %s has no events", sku)
	}
	return nil
}

// checkProducts compares the catalogue and the orders' replica of it with the last event of each product.
func (e *examiner) checkProducts(ctx context.Context, b *books) error {
	for _, name := range []string{"catalog", "orders"} {
		pool := e.pools[name]
		if pool == nil {
			continue
		}
		rows, err := pool.Query(ctx, `select sku, name, price_amount, price_currency, active from products`)
		if err != nil {
			return fmt.Errorf("verify the products of %s: %w", name, err)
		}
		found := map[string]events.ProductChanged{}
		var p events.ProductChanged
		_, err = pgx.ForEachRow(rows, []any{&p.SKU, &p.Name, &p.Price.Amount, &p.Price.Currency, &p.Active}, func() error {
			found[p.SKU] = p
			return nil
		})
		if err != nil {
			return fmt.Errorf("verify the products of %s: %w", name, err)
		}
		for sku, want := range b.products {
			want.Description = ""
			if found[sku] != want {
				b.fault("%s: product %s is %+v, its last event says %+v", name, sku, found[sku], want)
			}
		}
		if len(found) != len(b.products) {
			b.fault("%s: %d products, the events give %d", name, len(found), len(b.products))
		}
	}
	return nil
}

// checkAccounts compares loyalty's accounts with what payments' events should have made of them.
func checkAccounts(b *books) {
	for customer, want := range b.accounts {
		if got := b.earned[customer]; !reflect.DeepEqual(got, want) {
			b.fault("loyalty: the account of %s is %+v, the payments give %+v", customer, got, want)
		}
	}
	for customer := range b.earned {
		if _, ok := b.accounts[customer]; !ok {
			b.fault("loyalty: the account of %s has points without a payment", customer)
		}
	}
}

// checkVerdicts compares fraud's verdicts with those that its rule gives on the same payments in the same order.
func checkVerdicts(b *books) {
	for payment, want := range b.judged {
		got, ok := b.verdicts[payment]
		if !ok {
			b.fault("fraud: payment %s has no verdict", payment)
		} else if got != want && !b.late[payment] {
			b.fault("fraud: payment %s is a duplicate of %q, the rule says of %q", payment, got, want)
		}
	}
	for payment := range b.verdicts {
		if _, ok := b.judged[payment]; !ok {
			b.fault("fraud: the verdict on payment %s is on nothing that was authorised", payment)
		}
	}
}

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
	err := simprovider.Ledger(ctx, e.pools[provider], func(a simprovider.Authorization) error {
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
