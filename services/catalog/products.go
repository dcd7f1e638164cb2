package catalog

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/eventstore"
	"github.com/feira-shop/feira/shared/money"
	"github.com/feira-shop/feira/shared/telemetry"
)

//go:embed sql/save_product.sql
var saveProduct string

// Product is a product with the number of its changes.
type Product struct {
	events.ProductChanged
	Version   int64
	UpdatedAt time.Time
}

// NotFoundError says that there is no such product.
type NotFoundError struct{ SKU string }

func (e *NotFoundError) Error() string { return fmt.Sprintf("catalog: there is no product %q", e.SKU) }

// VersionError says that a product is not at the version that a change demanded.
type VersionError struct {
	SKU          string
	Wanted, Have int64
}

func (e *VersionError) Error() string {
	return fmt.Sprintf("catalog: product %s is at version %d, not at %d; read it again", e.SKU, e.Have, e.Wanted)
}

// PriceError says that a price is in no currency that there is, or below zero.
type PriceError struct {
	SKU   string
	Price money.Money
}

func (e *PriceError) Error() string {
	return fmt.Sprintf("catalog: product %s cannot cost %d %s; a price is 0 or more minor units of an ISO 4217 currency",
		e.SKU, e.Price.Amount, e.Price.Currency)
}

// querier is a pool or a transaction.
type querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// anyVersion accepts a change whatever the product's version.
const anyVersion = -1

// put writes a product as it is from now on, and returns it as it was written. Row and event are one transaction: not
// everything needs event sourcing, but whatever others hear of goes through the outbox. A change that changes nothing
// is no event.
func put(ctx context.Context, store *eventstore.Store, p events.ProductChanged, expected int64, actor string) (written Product, err error) {
	if !p.Price.Valid() || p.Price.Amount < 0 {
		return Product{}, &PriceError{SKU: p.SKU, Price: p.Price}
	}
	err = store.Within(ctx, func(ctx context.Context, tx *eventstore.Tx) error {
		streams, err := tx.Load(ctx, []string{Stream(p.SKU)})
		if err != nil {
			return err
		}
		s := streams[Stream(p.SKU)]
		if expected != anyVersion && s.Version != expected {
			return &VersionError{SKU: p.SKU, Wanted: expected, Have: s.Version}
		}
		if s.Version > 0 {
			if written, err = read(ctx, tx, p.SKU); err != nil || written.ProductChanged == p {
				return err
			}
		}
		written = Product{ProductChanged: p, Version: s.Version + 1, UpdatedAt: time.Now().UTC().Truncate(time.Microsecond)}
		return change(ctx, tx, s, written, actor)
	})
	if err != nil {
		return Product{}, err
	}
	return written, nil
}

// shape is the version of a product's JSON: the event as it is.
const shape = 1

// latest folds a product's events: the last one is the product.
func latest(p events.ProductChanged, event events.Event) events.ProductChanged {
	if e, ok := event.(events.ProductChanged); ok {
		return e
	}
	return p
}

// Stream is the stream of a product's changes.
func Stream(sku string) string { return "product-" + sku }

func change(ctx context.Context, tx *eventstore.Tx, s eventstore.Stream, p Product, actor string) error {
	id, err := uuid.NewV7()
	if err != nil {
		return fmt.Errorf("make an event id: %w", err)
	}
	encoded, err := eventstore.Encode(events.Meta{
		ID: id.String(), Time: p.UpdatedAt, Correlation: id.String(), Traceparent: telemetry.Traceparent(ctx), Actor: actor,
	}, p.ProductChanged)
	if err != nil {
		return err
	}
	err = tx.Exec(ctx, saveProduct, p.SKU, p.Version, p.Name, p.Description, p.Price.Amount, p.Price.Currency, p.Active, p.UpdatedAt)
	if err != nil {
		return err
	}
	tx.Append(eventstore.Append{
		Stream: s.Name, Expected: s.Version, Shape: shape, State: encoded.Data, Events: []eventstore.Event{encoded},
	})
	return nil
}

const columns = `select sku, version, name, description, price_amount, price_currency, active, updated_at from products `

func scan(row pgx.CollectableRow) (p Product, err error) {
	err = row.Scan(&p.SKU, &p.Version, &p.Name, &p.Description, &p.Price.Amount, &p.Price.Currency, &p.Active, &p.UpdatedAt)
	return p, err
}

// get reads one product.
func get(ctx context.Context, store *eventstore.Store, sku string) (Product, error) {
	return read(ctx, store.Pool(), sku)
}

func read(ctx context.Context, q querier, sku string) (Product, error) {
	rows, err := q.Query(ctx, columns+`where sku = $1`, sku)
	if err != nil {
		return Product{}, fmt.Errorf("read product %s: %w", sku, err)
	}
	p, err := pgx.CollectExactlyOneRow(rows, scan)
	if errors.Is(err, pgx.ErrNoRows) {
		return Product{}, &NotFoundError{sku}
	}
	return p, err
}

// list reads products by SKU, after the given one, and whether there are more.
func list(ctx context.Context, store *eventstore.Store, after string, limit int) (page []Product, more bool, err error) {
	rows, err := store.Pool().Query(ctx, columns+`where sku > $1 order by sku limit $2`, after, limit+1)
	if err != nil {
		return nil, false, fmt.Errorf("list products: %w", err)
	}
	page, err = pgx.CollectRows(rows, scan)
	if len(page) > limit {
		return slices.Clip(page[:limit]), true, err
	}
	return page, false, err
}
