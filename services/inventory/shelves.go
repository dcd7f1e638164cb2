package inventory

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/feira-shop/feira/shared/eventstore"
)

// lockShelves reads the shelves of the given products and locks them, in the order of their SKUs.
func lockShelves(ctx context.Context, tx *eventstore.Tx, skus []string) (Shelves, error) {
	shelves := make(Shelves, len(skus))
	if len(skus) == 0 {
		return shelves, nil
	}
	rows, err := tx.Query(ctx, `select sku, on_hand, reserved from stock where sku = any($1) order by sku for update`, skus)
	if err != nil {
		return nil, fmt.Errorf("lock the stock of %d products: %w", len(skus), err)
	}
	var sku string
	var s Shelf
	_, err = pgx.ForEachRow(rows, []any{&sku, &s.OnHand, &s.Reserved}, func() error {
		shelves[sku] = s
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("lock the stock of %d products: %w", len(skus), err)
	}
	return shelves, nil
}
