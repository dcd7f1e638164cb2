package oracle

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/feira-shop/feira/services/inventory"
	"github.com/feira-shop/feira/services/loyalty"
	"github.com/feira-shop/feira/services/orders"
	"github.com/feira-shop/feira/services/payments"
	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/eventstore"
)

// folder folds the streams of one kind anew.
type folder struct {
	prefix string
	take   func(stream string, e events.Event)
	state  func(stream string) any
	shape  int
}

func fold[S any](prefix string, shape int, evolve func(S, events.Event) S) folder {
	states := map[string]S{}
	return folder{
		prefix: prefix, shape: shape,
		take:  func(stream string, e events.Event) { states[stream] = evolve(states[stream], e) },
		state: func(stream string) any { return states[stream] },
	}
}

// folders are the kinds of streams of each service.
func folders() map[string][]folder {
	last := func(_ events.ProductChanged, e events.Event) events.ProductChanged {
		p, _ := e.(events.ProductChanged)
		return p
	}
	delivery := func(_ inventory.Delivery, e events.Event) inventory.Delivery {
		r, _ := e.(events.StockReceived)
		return inventory.Delivery{Receipt: r.Receipt, SKU: r.SKU, Quantity: r.Quantity}
	}
	return map[string][]folder{
		"orders":    {fold("order-", orders.Rules.Shape, orders.Evolve)},
		"payments":  {fold("payment-", 1, payments.Evolve)},
		"inventory": {fold("reservation-", 1, inventory.Evolve), fold("receipt-", 1, delivery)},
		"loyalty":   {fold("loyalty-", loyalty.Rules.Shape, loyalty.Evolve)},
		"catalog":   {fold("product-", 1, last)},
		"fraud":     {fold("verdict-", 0, func(s struct{}, _ events.Event) struct{} { return s })},
	}
}

// readStore reads one store in position order, hands every event on, and checks each stream's kept state.
func (e *examiner) readStore(ctx context.Context, b *books, name string, kinds []folder, each func(events.Recorded)) error {
	versions := map[string]int64{}
	var last int64
	err := e.stores[name].Each(ctx, 0, func(r events.Recorded) error {
		b.events++
		if r.Sequence <= last {
			b.fault("%s: position %d comes after %d", name, r.Sequence, last)
		}
		last = r.Sequence
		versions[r.Subject]++
		if r.Event == nil {
			b.fault("%s: the event at position %d has the unknown type %s", name, r.Sequence, r.Type)
			return nil
		}
		if f := kindOf(kinds, r.Subject); f != nil {
			f.take(r.Subject, r.Event)
		}
		each(r)
		return nil
	})
	if err != nil {
		return fmt.Errorf("verify %s: %w", name, err)
	}
	return e.checkStates(ctx, b, name, kinds, versions)
}

func kindOf(kinds []folder, stream string) *folder {
	for i := range kinds {
		if strings.HasPrefix(stream, kinds[i].prefix) {
			return &kinds[i]
		}
	}
	return nil
}

func (e *examiner) checkStates(ctx context.Context, b *books, name string, kinds []folder, versions map[string]int64) error {
	left := len(versions)
	err := e.stores[name].EachStream(ctx, func(s eventstore.Stream) error {
		f := kindOf(kinds, s.Name)
		switch {
		case f == nil:
			b.fault("%s: stream %s is of no known kind", name, s.Name)
			return nil
		case s.Version != versions[s.Name]:
			b.fault("%s: stream %s is at version %d and has %d events", name, s.Name, s.Version, versions[s.Name])
		case s.Shape == f.shape:
			want, err := json.Marshal(f.state(s.Name))
			if err != nil {
				return fmt.Errorf("encode the state of %s: %w", s.Name, err)
			}
			if !sameJSON(want, s.State) {
				b.fault("%s: the state of %s is %s, its events give %s", name, s.Name, s.State, want)
			}
		}
		left--
		return nil
	})
	if err != nil {
		return fmt.Errorf("verify the states of %s: %w", name, err)
	}
	if left != 0 {
		b.fault("%s: %d streams have events and no state", name, left)
	}
	return nil
}

// sameJSON compares values, not their layout.
func sameJSON(a, b []byte) bool {
	if bytes.Equal(a, b) {
		return true
	}
	var x, y any
	if json.Unmarshal(a, &x) != nil || json.Unmarshal(b, &y) != nil {
		return false
	}
	p, _ := json.Marshal(x) // of values that were just decoded
	q, _ := json.Marshal(y)
	return bytes.Equal(p, q)
}
