package service

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/feira-shop/feira/shared/decider"
	"github.com/feira-shop/feira/shared/eventstore"
)

// rebuildBatch is how many streams are locked at a time: writers of others go on meanwhile.
const rebuildBatch = 100

// Rebuilt says what a rebuild found.
type Rebuilt struct {
	Streams int // examined
	Changed int // whose kept state was not what their events give, or of another shape
	// Archived are those whose events are not all there: their states are left as they are.
	Archived int
}

// Rebuild computes the kept state of every stream anew from its events and writes what differs, a hundred streams in a
// transaction, beside a running service. dry only counts. progress is called after each batch.
func (d Definition) Rebuild(ctx context.Context, store *eventstore.Store, dry bool, progress func(Rebuilt)) (Rebuilt, error) {
	var done Rebuilt
	var batch []string
	flush := func() error {
		changed, archived, err := d.rebuild(ctx, store, batch, dry)
		done.Streams += len(batch)
		done.Changed += changed
		done.Archived += archived
		batch = batch[:0]
		progress(done)
		return err
	}
	err := store.EachStream(ctx, func(s eventstore.Stream) error {
		if batch = append(batch, s.Name); len(batch) < rebuildBatch {
			return nil
		}
		return flush()
	})
	if err == nil && len(batch) > 0 {
		err = flush()
	}
	if err != nil {
		return done, fmt.Errorf("rebuild %s: %w", d.Name, err)
	}
	return done, nil
}

func (d Definition) rebuild(ctx context.Context, store *eventstore.Store, names []string, dry bool) (changed, archived int, err error) {
	err = store.Within(ctx, func(ctx context.Context, tx *eventstore.Tx) error {
		changed, archived = 0, 0
		kept, err := tx.Load(ctx, names)
		if err != nil {
			return err
		}
		for _, s := range kept {
			state, kind, err := d.fold(ctx, tx, s)
			var gone *eventstore.ArchivedError
			if errors.As(err, &gone) {
				archived++
				continue
			}
			if err != nil {
				return err
			}
			if s.Shape == kind.Shape && bytes.Equal(state, s.State) {
				continue
			}
			changed++
			if dry {
				continue
			}
			tx.Restate(eventstore.Stream{Name: s.Name, Version: s.Version, Shape: kind.Shape, State: state})
		}
		return nil
	})
	return changed, archived, err
}

// UnknownStreamError says that a stream is of no kind that the service declares.
type UnknownStreamError struct{ Service, Stream string }

func (e *UnknownStreamError) Error() string {
	return fmt.Sprintf("stream %s is of no kind that %s declares: add it to the service's Streams", e.Stream, e.Service)
}

func (d Definition) fold(ctx context.Context, tx *eventstore.Tx, s eventstore.Stream) (json.RawMessage, decider.Kind, error) {
	for _, kind := range d.Streams {
		if !strings.HasPrefix(s.Name, kind.Prefix) {
			continue
		}
		history, err := tx.History(ctx, s.Name)
		if err != nil {
			return nil, kind, err
		}
		if int64(len(history)) != s.Version {
			return nil, kind, &decider.BrokenHistoryError{Stream: s.Name, Version: s.Version, Events: len(history)}
		}
		f := kind.Fold()
		for i, r := range history {
			if r.Event == nil { // written by a newer release, which alone may fold it
				return nil, kind, &decider.UnknownHistoryError{Stream: s.Name, Version: int64(i + 1), Type: r.Type}
			}
			f.Take(r.Event)
		}
		state, err := f.State()
		return state, kind, err
	}
	return nil, decider.Kind{}, &UnknownStreamError{d.Name, s.Name}
}
