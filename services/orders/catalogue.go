package orders

import (
	"context"
	_ "embed"
	"fmt"

	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/eventstore"
	"github.com/feira-shop/feira/shared/operator"
)

//go:embed sql/upsert_products.sql
var upsertProducts string

// catalogue keeps the service's own replica of the products, so that a checkout asks nobody for a price.
var catalogue = operator.Definition{
	Name:    "orders.catalogue",
	Topics:  []events.Topic{events.Catalog},
	Types:   []string{events.ProductChanged{}.EventType()},
	Tables:  []string{"products"},
	Handler: func(*eventstore.Store) operator.Handler { return replica{} },
}

type replica struct{}

// Apply writes the batch's last word on each product.
func (replica) Apply(_ context.Context, tx *eventstore.Tx, batch []operator.Record) error {
	last := map[string]events.ProductChanged{}
	for _, r := range batch {
		if p, ok := r.Event.(events.ProductChanged); ok {
			last[p.SKU] = p
		}
	}
	var skus, names, currencies []string
	var amounts []int64
	var active []bool
	for _, p := range last {
		skus, names = append(skus, p.SKU), append(names, p.Name)
		amounts, currencies = append(amounts, p.Price.Amount), append(currencies, p.Price.Currency)
		active = append(active, p.Active)
	}
	if len(skus) > 0 {
		tx.Later(upsertProducts, skus, names, amounts, currencies, active)
	}
	return nil
}

// product is one row of the replica.
type product struct {
	SKU, Name, Currency string
	Amount              int64
	Active              bool
}

// products looks up the given skus; unknown ones are missing in the answer.
func products(ctx context.Context, store *eventstore.Store, skus []string) (map[string]product, error) {
	rows, err := store.Pool().Query(ctx,
		`select sku, name, price_amount, price_currency, active from products where sku = any($1)`, skus)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	found := make(map[string]product, len(skus))
	for rows.Next() {
		var p product
		if err := rows.Scan(&p.SKU, &p.Name, &p.Amount, &p.Currency, &p.Active); err != nil {
			return nil, err
		}
		found[p.SKU] = p
	}
	return found, rows.Err()
}

// replicaFilled says whether enough products came in to take orders.
func replicaFilled(ctx context.Context, store *eventstore.Store, want int) error {
	if want == 0 {
		return nil
	}
	var have int
	if err := store.Pool().QueryRow(ctx, `select count(*) from products`).Scan(&have); err != nil {
		return fmt.Errorf("count the products: %w", err)
	}
	if have < want {
		return fmt.Errorf("the replica of the catalogue holds %d products, %d are expected", have, want)
	}
	return nil
}
