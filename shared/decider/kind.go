package decider

import (
	"encoding/json"
	"fmt"

	"github.com/feira-shop/feira/shared/events"
)

// Kind is a kind of stream whose state can be computed anew from its events: to rebuild what the store keeps, and to
// verify it.
type Kind struct {
	Prefix string // of the streams' names
	Shape  int    // of the kept state
	Fold   func() Fold
}

// Fold is the computing of one stream's state.
type Fold interface {
	Take(e events.Event)
	State() (json.RawMessage, error)
}

// KindOf declares a kind of stream by what folds it.
func KindOf[S any](prefix string, shape int, initial S, evolve func(S, events.Event) S) Kind {
	return Kind{Prefix: prefix, Shape: shape, Fold: func() Fold { return &fold[S]{initial, evolve} }}
}

// Kind declares the streams of an aggregate.
func (d Decider[S]) Kind(prefix string) Kind { return KindOf(prefix, d.Shape, d.Initial, d.Evolve) }

type fold[S any] struct {
	state  S
	evolve func(S, events.Event) S
}

func (f *fold[S]) Take(e events.Event) { f.state = f.evolve(f.state, e) }

func (f *fold[S]) State() (json.RawMessage, error) {
	b, err := json.Marshal(f.state)
	if err != nil {
		return nil, fmt.Errorf("decider: encode a state: %w", err)
	}
	return b, nil
}
