package inventory

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/eventstore"
	"github.com/feira-shop/feira/shared/telemetry"
)

// Delivery is so many pieces of a product that came in.
type Delivery struct {
	Receipt  string `json:"receipt"` // id; the same receipt counts once
	SKU      string `json:"sku"`
	Quantity int64  `json:"quantity"`
}

// ReceiptReusedError says that a receipt came again with another product or quantity.
type ReceiptReusedError struct{ Known, Given Delivery }

func (e *ReceiptReusedError) Error() string {
	return fmt.Sprintf("inventory: receipt %s was for %d of %s, not for %d of %s; use a new key for a new delivery",
		e.Known.Receipt, e.Known.Quantity, e.Known.SKU, e.Given.Quantity, e.Given.SKU)
}

const addToShelves = `
insert into stock (sku, on_hand, reserved)
select sku, sum(quantity), 0 from unnest($1::text[], $2::bigint[]) as d (sku, quantity) group by sku order by sku
on conflict (sku) do update set on_hand = stock.on_hand + excluded.on_hand`

// receive records deliveries, each once, in one transaction with the shelves. It returns how many were new.
func receive(ctx context.Context, store *eventstore.Store, actor string, deliveries []Delivery) (fresh int, err error) {
	err = store.Within(ctx, func(ctx context.Context, tx *eventstore.Tx) error {
		fresh = 0
		names := make([]string, len(deliveries))
		for i, d := range deliveries {
			names[i] = receiptStream(d)
		}
		slices.Sort(names)
		streams, err := tx.Load(ctx, slices.Compact(names))
		if err != nil {
			return err
		}
		var skus []string
		var quantities []int64
		known := map[string]Delivery{} // by receipt
		for _, d := range deliveries {
			isNew, err := take(ctx, tx, streams[receiptStream(d)], known, actor, d)
			if err != nil {
				return err
			}
			if isNew {
				skus, quantities = append(skus, d.SKU), append(quantities, d.Quantity)
				fresh++
			}
		}
		if fresh == 0 {
			return nil
		}
		return tx.Exec(ctx, addToShelves, skus, quantities)
	})
	return fresh, err
}

func receiptStream(d Delivery) string { return "receipt-" + d.Receipt }

// received folds a receipt's only event.
func received(d Delivery, event events.Event) Delivery {
	if e, ok := event.(events.StockReceived); ok {
		d = Delivery{Receipt: e.Receipt, SKU: e.SKU, Quantity: e.Quantity}
	}
	return d
}

// take appends one delivery unless its receipt is known.
func take(ctx context.Context, tx *eventstore.Tx, s eventstore.Stream, known map[string]Delivery, actor string, d Delivery) (bool, error) {
	before, taken := known[d.Receipt]
	if s.Version > 0 {
		taken = true
		if err := json.Unmarshal(s.State, &before); err != nil {
			return false, fmt.Errorf("read receipt %s: %w", d.Receipt, err)
		}
	}
	if taken {
		if before != d {
			return false, &ReceiptReusedError{Known: before, Given: d}
		}
		return false, nil
	}
	known[d.Receipt] = d
	id, err := uuid.NewV7()
	if err != nil {
		return false, fmt.Errorf("make an event id: %w", err)
	}
	meta := events.Meta{
		ID: id.String(), Time: events.Timestamp(time.Now()), Correlation: d.Receipt, Traceparent: telemetry.Traceparent(ctx), Actor: actor,
	}
	encoded, err := eventstore.Encode(meta, events.StockReceived{SKU: d.SKU, Quantity: d.Quantity, Receipt: d.Receipt})
	if err != nil {
		return false, err
	}
	state, err := json.Marshal(d)
	if err != nil {
		return false, fmt.Errorf("encode receipt %s: %w", d.Receipt, err)
	}
	tx.Append(eventstore.Append{Stream: receiptStream(d), Shape: shape, State: state, Events: []eventstore.Event{encoded}})
	return true, nil
}
