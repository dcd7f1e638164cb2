package stream

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/eventstore"
	"github.com/feira-shop/feira/shared/operator"
)

// answers are the appends of a batch. Each is the first and only one of its stream.
type answers struct {
	appends []eventstore.Append
	of      map[string]bool // streams
}

// begin forgets the answers of the batch before, and keeps their room.
func (a *answers) begin() {
	if a.of == nil {
		a.of = map[string]bool{}
	}
	clear(a.of)
	clear(a.appends)
	a.appends = a.appends[:0]
}

func (p *processor[S]) emit(cause events.Recorded, e events.Event) error {
	said := &p.said
	stream := p.rule.Stream(e)
	if said.of[stream] {
		return nil // the first one stands
	}
	meta, err := events.Reply(cause, p.name, p.now())
	if err != nil {
		return err
	}
	encoded, err := eventstore.Encode(meta, e)
	if err != nil {
		return operator.Reject(err)
	}
	said.of[stream] = true
	said.appends = append(said.appends, eventstore.Append{Stream: stream, State: json.RawMessage(`{}`), Events: []eventstore.Event{encoded}})
	return nil
}

// say appends the answers. A stream that is there already had its answer, from this operator under an earlier name or
// before its state was lost; it stands. That is looked up only after a refused attempt, so it costs nothing as a rule.
func (p *processor[S]) say(ctx context.Context, tx *eventstore.Tx) error {
	said := &p.said
	if !p.refused {
		tx.Append(said.appends...)
		return nil
	}
	names := make([]string, len(said.appends))
	for i, a := range said.appends {
		names[i] = a.Stream
	}
	there, err := tx.Load(ctx, names)
	if err != nil {
		return err
	}
	tx.Append(slices.DeleteFunc(said.appends, func(a eventstore.Append) bool { return there[a.Stream].Version > 0 })...)
	return nil
}
