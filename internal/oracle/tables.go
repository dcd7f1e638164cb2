package oracle

import (
	"context"
	"fmt"
	"reflect"

	"github.com/jackc/pgx/v5"

	"github.com/feira-shop/feira/services/fraud"
	"github.com/feira-shop/feira/services/inventory"
	"github.com/feira-shop/feira/shared/events"
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

// The replica of orders has no descriptions.
const (
	catalogueSQL = `select sku, name, description, price_amount, price_currency, active from products`
	replicaSQL   = `select sku, name, '', price_amount, price_currency, active from products`
)

// checkProducts compares the catalogue and the orders' replica of it with the last event of each product.
func (e *examiner) checkProducts(ctx context.Context, b *books) error {
	for name, sql := range map[string]string{"catalog": catalogueSQL, "orders": replicaSQL} {
		pool := e.pools[name]
		if pool == nil {
			continue
		}
		rows, err := pool.Query(ctx, sql)
		if err != nil {
			return fmt.Errorf("verify the products of %s: %w", name, err)
		}
		found := map[string]events.ProductChanged{}
		var p events.ProductChanged
		_, err = pgx.ForEachRow(rows, []any{&p.SKU, &p.Name, &p.Description, &p.Price.Amount, &p.Price.Currency, &p.Active}, func() error {
			found[p.SKU] = p
			return nil
		})
		if err != nil {
			return fmt.Errorf("verify the products of %s: %w", name, err)
		}
		compareProducts(b, name, found)
	}
	return nil
}

func compareProducts(b *books, name string, found map[string]events.ProductChanged) {
	for sku, want := range b.products {
		if name == "orders" {
			want.Description = ""
		}
		if got, there := found[sku]; !there {
			b.fault("%s: product %s is missing, its last event says %+v", name, sku, want)
		} else if got != want {
			b.fault("%s: product %s is %+v, its last event says %+v", name, sku, got, want)
		}
		delete(found, sku)
	}
	for sku := range found {
		b.fault("%s: product %s has no events", name, sku)
	}
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

// checkVerdicts compares fraud's verdicts with those that its rules give on the same payments in the same order. What was
// judged with other thresholds, or another model, is compared as far as they do not matter.
func checkVerdicts(b *books) {
	for payment, want := range b.judged {
		got, ok := b.verdicts[payment]
		if !ok {
			b.fault("fraud: payment %s has no verdict", payment)
		} else if !fraud.Agree(got, want) {
			b.fault("fraud: the verdict on payment %s is %s %+v, the rules say %s %+v", payment, got.EventType(), got, want.EventType(), want)
		}
	}
	for payment := range b.verdicts {
		if _, ok := b.judged[payment]; !ok {
			b.fault("fraud: the verdict on payment %s is on nothing that was authorised", payment)
		}
	}
}
