package operator

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/eventstore"
)

// Recomputed is a handler with state in memory that [Rebuild] can make anew, on an instance that runs nowhere else.
type Recomputed interface {
	Stateful
	// Recompute applies a record to memory alone. What follows from it is handed to emit with the stream that it starts.
	Recompute(r Record, emit func(stream string, e events.Event) error) error
	// StateTables are where states are saved; those of other operators may be in them too.
	StateTables() []string
	// Differs holds the memory of a partition, as it must be, against what is saved.
	Differs(ctx context.Context, saved Querier, c Claim) (TableDifference, error)
	// Replace saves the memory of a partition in the place of what is saved.
	Replace(ctx context.Context, tx pgx.Tx, c Claim) error
}

// Revised is a handler whose results hold revisions, so that they can be corrected.
type Revised interface {
	Recomputed
	// Revise compares the results that were said, as of the moment when Differs was called, with the newest revisions in
	// the store, and, unless dry, appends the next revision of those that differ. It goes on where one that broke off
	// ended.
	Revise(ctx context.Context, store *eventstore.Store, dry bool) (TableDifference, error)
}

// revise corrects what was said. It follows the switch, in transactions of its own: what it appends to is closed, and
// the running operator has no more to do with it.
func (r *rebuild) revise(ctx context.Context) error {
	results, ok := r.state.(Revised)
	if !ok {
		return nil
	}
	found, err := results.Revise(ctx, r.store, r.opts.DryRun)
	r.result.Outputs = &found
	if err != nil || r.opts.DryRun {
		return err
	}
	_, err = r.session.Exec(ctx, "insert into operator_audit (operator, action, who, detail) values ($1, 'revise', $2, $3)",
		r.def.Name, r.opts.Who, fmt.Sprintf("%d results, %d missing, %d with a new revision", found.Rows, found.Missing, found.Different))
	return err
}

// Agreeing is a [Recomputed] handler whose outputs need not be the same when they are made anew: it knows with what it
// made them, and so what of them can be compared.
type Agreeing interface {
	// Agree reports whether what was said is what is said anew, as far as the two can be compared.
	Agree(said, again events.Event) bool
}

// output is what a handler emitted.
type output struct {
	event events.Event
	data  json.RawMessage
}

// outputs are what a handler emits, compared with the event store, where the first event of a stream stands.
type outputs struct {
	seen    map[string]bool   // streams
	waiting map[string]output // not compared yet
	found   TableDifference
}

// comparedAtOnce bounds what waits.
const comparedAtOnce = 500

// What is archived is known to be there, and cannot be compared.
const comparedSQL = `select s.stream, e.type, e.data from streams s left join events e on e.stream = s.stream and e.version = 1
	where s.stream = any ($1) and s.version > 0`

// recompute applies records in memory and compares what they emit.
func (r *rebuild) recompute(ctx context.Context, items []*item) error {
	for _, it := range items {
		err := r.state.Recompute(it.rec, func(stream string, e events.Event) error {
			if r.outputs.seen[stream] {
				return nil // the first one stands
			}
			r.outputs.seen[stream] = true
			data, err := json.Marshal(e)
			r.outputs.waiting[stream] = output{e, data}
			return err
		})
		if err != nil {
			at := it.rec
			return &RebuildRejectedError{Operator: r.def.Name, Place: Place{at.Topic, at.Partition, at.Offset}, Event: at.ID, Err: err}
		}
		if len(r.outputs.waiting) >= comparedAtOnce {
			if err := r.compareOutputs(ctx); err != nil {
				return err
			}
		}
	}
	if err := r.compareOutputs(ctx); err != nil {
		return err
	}
	return r.opts.reached("applied")
}

// compareOutputs looks the emitted events up in the store. They are not written: what was said was said.
func (r *rebuild) compareOutputs(ctx context.Context) error {
	waiting, found := r.outputs.waiting, &r.outputs.found
	r.outputs.waiting = map[string]output{}
	rows, err := r.opts.Pool.Query(ctx, comparedSQL, slices.Collect(maps.Keys(waiting)))
	if err != nil {
		return fmt.Errorf("compare what the operator said: %w", err)
	}
	said, types := map[string]json.RawMessage{}, map[string]string{}
	var stream string
	var typ *string // nil with data: archived
	var data []byte
	if _, err := pgx.ForEachRow(rows, []any{&stream, &typ, &data}, func() error {
		said[stream] = bytes.Clone(data)
		if typ != nil {
			types[stream] = *typ
		}
		return nil
	}); err != nil {
		return fmt.Errorf("compare what the operator said: %w", err)
	}
	for _, stream := range slices.Sorted(maps.Keys(waiting)) {
		have, there := said[stream]
		if there && have == nil {
			continue // archived
		}
		found.Rows++
		switch {
		case !there:
			found.Missing++
			found.Note("is missing: " + stream + " " + string(waiting[stream].data))
		case !r.agree(types[stream], have, waiting[stream]):
			found.Different++
			found.Note("of " + stream + " is " + string(have) + ", must be " + string(waiting[stream].data))
		}
	}
	return nil
}

// agree compares what was said with what is said anew.
func (r *rebuild) agree(typ string, said json.RawMessage, again output) bool {
	if bytes.Equal(said, again.data) && typ == again.event.EventType() {
		return true
	}
	own, ok := r.state.(Agreeing)
	if !ok {
		return false
	}
	e, err := r.opts.Registry.Decode(typ, said)
	return err == nil && own.Agree(e, again.event)
}

// Note adds a difference in words, while there is room.
func (d *TableDifference) Note(text string) {
	if len(d.Examples) < examples {
		d.Examples = append(d.Examples, text)
	}
}

// exchangeStates is exchange for states in memory.
func (r *rebuild) exchangeStates(ctx context.Context, tx pgx.Tx) error {
	r.result.Tables, r.result.Outputs = nil, &r.outputs.found
	var differ []Claim
	for _, p := range slices.SortedFunc(maps.Keys(r.at), place.compare) {
		c := Claim{Topic: p.topic, Partition: p.partition}
		d, err := r.state.Differs(ctx, tx, c)
		if err != nil {
			return err
		}
		r.result.Tables = append(r.result.Tables, d)
		if d.Missing+d.Excess+d.Different > 0 {
			differ = append(differ, c)
		}
	}
	if r.opts.DryRun {
		return nil
	}
	for _, c := range differ {
		if err := r.state.Replace(ctx, tx, c); err != nil {
			return err
		}
	}
	return r.fence(ctx, tx)
}
