package inventory

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/feira-shop/feira/shared/decider"
	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/eventstore"
	"github.com/feira-shop/feira/shared/operator"
)

//go:embed sql/save_shelves.sql
var saveShelves string

// shape is the version of a reservation's JSON.
const shape = 1

// reservations is how a reservation is restored and folded. What is decided depends on the shelves too: see [reserver].
var reservations = decider.Decider[Reservation]{Evolve: Evolve, Shape: shape}

// Stream is the stream of an order's reservation.
func Stream(order string) string { return "reservation-" + order }

// reserveOperator reserves and releases stock for a whole batch at once: the shelves of all its products are locked
// in one statement, the decisions are made in memory, and every shelf is written once. A product that everybody
// wants costs no more than many that are wanted once.
var reserveOperator = operator.Definition{
	Name:    "inventory.reserve",
	Topics:  []events.Topic{events.Orders},
	Types:   []string{events.OrderPlaced{}.EventType(), events.OrderCancelled{}.EventType()},
	Handler: func(*eventstore.Store) operator.Handler { return &reserver{now: time.Now} },
}

type reserver struct{ now func() time.Time }

// booking is one stream of the batch.
type booking struct {
	loaded eventstore.Stream
	state  Reservation
	events []eventstore.Event
}

// Apply decides the batch. Locks are taken in the order that holds everywhere: streams, then shelves by SKU.
func (h *reserver) Apply(ctx context.Context, tx *eventstore.Tx, batch []operator.Record) error {
	bookings, err := load(ctx, tx, batch)
	if err != nil {
		return err
	}
	shelves, err := lockShelves(ctx, tx, products(batch, bookings))
	if err != nil {
		return err
	}
	before := maps.Clone(shelves)
	var changed []*booking // in the order in which the batch touched them, so that events keep about that of their causes
	for _, r := range batch {
		stream, cmd := command(r)
		b := bookings[stream]
		if b == nil {
			continue
		}
		untouched := len(b.events) == 0
		if err := h.decide(shelves, b, cmd, r); err != nil {
			return operator.Reject(err)
		}
		if untouched && len(b.events) > 0 {
			changed = append(changed, b)
		}
	}
	save(tx, before, shelves)
	return appendAll(tx, changed)
}

// command is what an event means to a reservation.
func command(r operator.Record) (stream string, cmd any) {
	switch e := r.Event.(type) {
	case events.OrderPlaced:
		lines := make([]events.Quantity, len(e.Lines))
		for i, l := range e.Lines {
			lines[i] = events.Quantity{SKU: l.SKU, Quantity: l.Quantity}
		}
		return Stream(e.Order), Reserve{Order: e.Order, Lines: lines}
	case events.OrderCancelled:
		return Stream(e.Order), Release{Order: e.Order}
	}
	return "", nil
}

func load(ctx context.Context, tx *eventstore.Tx, batch []operator.Record) (map[string]*booking, error) {
	names := make([]string, 0, len(batch))
	for _, r := range batch {
		if s, _ := command(r); s != "" {
			names = append(names, s)
		}
	}
	slices.Sort(names)
	loaded, err := tx.Load(ctx, slices.Compact(names))
	if err != nil {
		return nil, err
	}
	bookings := make(map[string]*booking, len(loaded))
	for name, s := range loaded {
		b := &booking{loaded: s}
		history := func() ([]events.Recorded, error) { return tx.History(ctx, name) }
		if b.state, err = reservations.Restore(s, history); err != nil {
			return nil, err
		}
		bookings[name] = b
	}
	return bookings, nil
}

// products lists the SKUs that the batch may touch: of new orders, and of reservations that may be released.
func products(batch []operator.Record, bookings map[string]*booking) []string {
	var skus []string
	for _, r := range batch {
		if e, ok := r.Event.(events.OrderPlaced); ok {
			for _, l := range e.Lines {
				skus = append(skus, l.SKU)
			}
		}
	}
	for _, b := range bookings {
		for _, l := range b.state.Lines {
			skus = append(skus, l.SKU)
		}
	}
	slices.Sort(skus)
	return slices.Compact(skus)
}

func (h *reserver) decide(shelves Shelves, b *booking, cmd any, r operator.Record) error {
	happened, err := Decide(shelves, b.state, cmd)
	if err != nil {
		return err
	}
	for _, e := range happened {
		meta, err := events.Reply(r.Recorded, "inventory", h.now())
		if err != nil {
			return err
		}
		encoded, err := eventstore.Encode(meta, e)
		if err != nil {
			return err
		}
		b.events = append(b.events, encoded)
		b.state = Evolve(b.state, e)
		Apply(shelves, e)
	}
	return nil
}

func appendAll(tx *eventstore.Tx, changed []*booking) error {
	for _, b := range changed {
		state, err := json.Marshal(b.state)
		if err != nil {
			return operator.Reject(fmt.Errorf("encode the state of %s: %w", b.loaded.Name, err))
		}
		tx.Append(eventstore.Append{Stream: b.loaded.Name, Expected: b.loaded.Version, Shape: shape, State: state, Events: b.events})
	}
	return nil
}

// save writes the shelves that changed.
func save(tx *eventstore.Tx, before, after Shelves) {
	var skus []string
	var onHand, reserved []int64
	for _, sku := range slices.Sorted(maps.Keys(after)) {
		if s := after[sku]; s != before[sku] {
			skus, onHand, reserved = append(skus, sku), append(onHand, s.OnHand), append(reserved, s.Reserved)
		}
	}
	if len(skus) > 0 {
		tx.Later(saveShelves, skus, onHand, reserved)
	}
}
