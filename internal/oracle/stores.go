package oracle

import (
	"context"
	"fmt"
	"maps"
	"strings"

	"github.com/feira-shop/feira/shared/decider"
	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/eventstore"
)

// streams are those of one store, folded anew.
type streams struct {
	kinds    []decider.Kind
	folds    map[string]decider.Fold
	versions map[string]int64
}

func (s *streams) take(r events.Recorded) {
	s.versions[r.Subject]++
	f := s.folds[r.Subject]
	if f == nil {
		k := s.kind(r.Subject)
		if k == nil {
			return
		}
		f = k.Fold()
		s.folds[r.Subject] = f
	}
	f.Take(r.Event)
}

func (s *streams) kind(stream string) *decider.Kind {
	for i := range s.kinds {
		if strings.HasPrefix(stream, s.kinds[i].Prefix) {
			return &s.kinds[i]
		}
	}
	return nil
}

// readStore reads one store in position order, hands every event on, and checks each stream's kept state.
func (e *examiner) readStore(ctx context.Context, b *books, name string, kinds []decider.Kind, each func(events.Recorded)) error {
	s := &streams{kinds: kinds, folds: map[string]decider.Fold{}, versions: map[string]int64{}}
	var last int64
	err := e.stores[name].Each(ctx, 0, func(r events.Recorded) error {
		b.events++
		if r.Sequence <= last {
			b.fault("%s: position %d comes after %d", name, r.Sequence, last)
		}
		last = r.Sequence
		if r.Event == nil {
			b.fault("%s: the event at position %d has the unknown type %s", name, r.Sequence, r.Type)
		}
		s.take(r)
		if r.Event != nil {
			each(r)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("verify %s: %w", name, err)
	}
	return e.checkStates(ctx, b, name, s)
}

func (e *examiner) checkStates(ctx context.Context, b *books, name string, s *streams) error {
	without := maps.Clone(s.versions) // streams whose state was not met yet
	err := e.stores[name].EachStream(ctx, func(kept eventstore.Stream) error {
		delete(without, kept.Name)
		k, f := s.kind(kept.Name), s.folds[kept.Name]
		switch {
		case k == nil || f == nil:
			b.fault("%s: stream %s is of no known kind, or has no events", name, kept.Name)
		case kept.Version != s.versions[kept.Name]:
			b.fault("%s: stream %s is at version %d and has %d events", name, kept.Name, kept.Version, s.versions[kept.Name])
		case kept.Shape == k.Shape: // one of another shape is not used by anybody
			want, err := f.State()
			if err != nil {
				return err
			}
			if d := difference(kept.State, want); d != "" {
				b.fault("%s: the state of %s differs from its events: %s", name, kept.Name, d)
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("verify the states of %s: %w", name, err)
	}
	for stream, events := range without {
		b.fault("%s: stream %s has %d events and no state", name, stream, events)
	}
	return nil
}
