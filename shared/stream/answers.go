package stream

import (
	"context"
	"encoding/json"

	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/eventstore"
	"github.com/feira-shop/feira/shared/operator"
)

// answers are the appends of a batch. Each is the first and only one of its stream.
type answers struct {
	appends []eventstore.Append
	of      map[string]bool // streams
}

func (p *processor[S]) emit(said *answers, cause events.Recorded, e events.Event) error {
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
func (p *processor[S]) say(ctx context.Context, tx *eventstore.Tx, said answers) error {
	var there map[string]eventstore.Stream
	if p.refused {
		names := make([]string, len(said.appends))
		for i, a := range said.appends {
			names[i] = a.Stream
		}
		var err error
		if there, err = tx.Load(ctx, names); err != nil {
			return err
		}
	}
	for _, a := range said.appends {
		if there[a.Stream].Version == 0 {
			tx.Append(a)
		}
	}
	return nil
}
