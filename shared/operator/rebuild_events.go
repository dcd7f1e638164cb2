package operator

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/IBM/sarama"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/feira-shop/feira/shared/events"
)

// catchUp applies what the running operator has applied, until no more than a batch was left to do.
func (r *rebuild) catchUp(ctx context.Context) error {
	for {
		var targets map[place]position
		err := pgx.BeginTxFunc(ctx, r.opts.Pool, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
			var err error
			targets, err = r.look(ctx, tx)
			return err
		})
		if err != nil {
			return err
		}
		n, err := r.advance(ctx, targets)
		if err != nil {
			return err
		}
		if n <= int64(r.maxBatch()) {
			return nil
		}
	}
}

func (r *rebuild) maxBatch() int {
	if r.def.MaxBatch > 0 {
		return r.def.MaxBatch
	}
	return defaultMaxBatch
}

// advance brings the copies to the targets, partition by partition, and says how many records that took.
func (r *rebuild) advance(ctx context.Context, targets map[place]position) (int64, error) {
	r.torn = true
	before := r.result.Records
	total := before
	for p, to := range targets {
		if to.next < 0 {
			return 0, &NotRebuildableError{
				Operator: r.def.Name, Why: fmt.Sprintf("it has not begun on %s/%d since a gap was accepted", p.topic, p.partition),
				Instead: "let it run, and try again",
			}
		}
		total += max(0, to.next-r.at[p].next)
	}
	for _, p := range slices.SortedFunc(maps.Keys(targets), place.compare) {
		if err := r.partition(ctx, p, targets[p], total); err != nil {
			return 0, err
		}
	}
	if err := r.flush(ctx); err != nil {
		return 0, err
	}
	r.torn = false
	return r.result.Records - before, nil
}

// partition reads on to where the running operator stands.
func (r *rebuild) partition(ctx context.Context, p place, to position, total int64) error {
	in := r.inspector(p.topic)
	topic := in.topic
	at, begun := r.at[p]
	var err error
	if !begun {
		if at, err = r.beginning(ctx, topic, p, in.chains()); err != nil {
			return err
		}
	}
	if at, err = r.records(ctx, topic, in, p, at, to.next, total); err != nil {
		return err
	}
	if in.chains() && at.source < to.source { // filled in from the store, and not on the topic up to here
		if at, err = r.stored(ctx, topic, p, at, to.source, false); err != nil {
			return err
		}
	}
	r.at[p] = at
	return nil
}

// records reads the topic on to an offset.
func (r *rebuild) records(ctx context.Context, topic events.Topic, in *inspector, p place, at position, to, total int64) (position, error) {
	for at.next < to {
		m, found, err := r.log.next(ctx, p, at.next, to)
		if err != nil {
			return at, err
		}
		if !found {
			at.next = to // compaction took the last ones
			break
		}
		it := in.inspect(rawOf(m), p.partition, m.Offset)
		after, f, hole := at.advance(it)
		if hole != nil {
			if at, err = r.stored(ctx, topic, p, at, hole.need, false); err != nil {
				return at, err
			}
			if after, f, hole = at.advance(it); hole != nil {
				return at, &MissingEventsError{Operator: r.def.Name, Topic: p.topic, Partition: p.partition, Offset: hole.offset, Have: hole.have, Need: hole.need}
			}
		}
		if err := r.take(ctx, &it, f, total); err != nil {
			return at, err
		}
		at = after
	}
	return at, nil
}

// beginning is where the topic begins. What it no longer has at its front shows as a hole, but without a chain: then all
// that the store has is applied before it, as the end of what is missing is not known; what the topic brings again comes
// in the same order and ends with the newest.
func (r *rebuild) beginning(ctx context.Context, topic events.Topic, p place, chains bool) (position, error) {
	first, err := r.opts.Client.GetOffset(p.topic, p.partition, sarama.OffsetOldest)
	if err != nil {
		return position{}, fmt.Errorf("first offset of %s/%d: %w", p.topic, p.partition, err)
	}
	at := position{next: first}
	if first == 0 || chains {
		return at, nil
	}
	if topic.Owner == "" {
		return at, &NotRebuildableError{
			Operator: r.def.Name, Why: fmt.Sprintf("%s/%d begins at offset %d, and nobody keeps what was before", p.topic, p.partition, at.next),
			Instead: "keep its tables as they are",
		}
	}
	next, err := r.stored(ctx, topic, p, at, 0, true)
	next.source = 0
	return next, err
}

// stored applies events of the owner's store behind a position: up to need, or all.
func (r *rebuild) stored(ctx context.Context, topic events.Topic, p place, at position, need int64, open bool) (position, error) {
	owner, err := r.log.owner(ctx, topic, r.opts.Owner)
	if err != nil {
		return at, err
	}
	f, err := PlanFill(ctx, owner, Hole{
		Operator: r.def.Name, Topic: p.topic, Partition: p.partition, Kind: kindMissingEvents, Next: at.next, Resume: at.next,
		Have: at.source, Need: need, Open: open,
	}, r.def.Types)
	if err != nil {
		return at, err
	}
	in := r.inspector(p.topic)
	for _, row := range f.rows {
		it, sequence, err := in.filled(row, p.partition)
		if err != nil {
			return at, err
		}
		it.rec.Offset = filledIn + sequence
		to, fate, hole := at.advance(*it)
		if hole != nil {
			return at, &NotInStoreError{Topic: p.topic, Partition: p.partition, Have: hole.have, Need: hole.need}
		}
		to.next = at.next
		at = to
		r.result.Stored++
		if err := r.take(ctx, it, fate, 0); err != nil {
			return at, err
		}
	}
	return at, nil
}

// filled reads a row of a [Fill] as if it came from the topic.
func (in *inspector) filled(row []any, partition int32) (*item, int64, error) {
	sequence, _ := row[3].(int64)
	key, _ := row[4].([]byte)
	value, _ := row[5].([]byte)
	encoded, _ := row[6].(string)
	at, _ := row[7].(time.Time)
	headers, err := decodeHeaders([]byte(encoded))
	it := in.inspect(raw{key: key, value: value, headers: headers, timestamp: at}, partition, sequence)
	return &it, sequence, err
}

// take puts a record into the batch, unless the running operator passed it without applying it.
func (r *rebuild) take(ctx context.Context, it *item, f fate, total int64) error {
	r.result.Records++
	if r.result.Records%1000 == 0 {
		r.opts.Progress(r.result.Records, max(total, r.result.Records))
	}
	switch {
	case f == parking && !r.aside.has(it):
		r.result.Unread++
		return nil
	case f == parking || f == applied && r.aside.has(it):
		it.fate = f
		r.skipped = append(r.skipped, it)
		return nil
	case f != applied:
		clock := (&step{item: it, fate: f}).told()
		if clock.IsZero() || r.aside.has(it) {
			return nil
		}
		it = &item{rec: tick(it.rec.Topic, it.rec.Partition, it.rec.Offset, clock), fate: applied}
	}
	if r.batch = append(r.batch, it); len(r.batch) < r.maxBatch() {
		return nil
	}
	return r.flush(ctx)
}

func (r *rebuild) flush(ctx context.Context) error {
	batch := r.batch
	r.batch = nil
	r.opts.Progress(r.result.Records, r.result.Records)
	return r.apply(ctx, batch)
}

// applyTries is how often a batch is tried that meets an error which may pass.
const applyTries = 5

// apply has the handler apply records to the copies.
func (r *rebuild) apply(ctx context.Context, items []*item) error {
	if len(items) == 0 {
		return nil
	}
	if r.state != nil {
		return r.recompute(ctx, items)
	}
	wait := backoff{}
	for try := 1; ; try++ {
		err := r.attempt(ctx, items)
		if err == nil {
			return r.opts.reached("applied")
		}
		var pe *pgconn.PgError
		if errors.As(err, &pe) && pe.Code[:2] == "42" {
			return &NotRebuildableError{
				Operator: r.def.Name, Why: "its handler uses more than its tables (" + err.Error() + ")",
				Instead: "name every table that it keeps, and let it neither read others nor append events",
			}
		}
		if classify(err) == deterministic {
			if len(items) == 1 {
				at := items[0].rec
				return &RebuildRejectedError{Operator: r.def.Name, Place: Place{at.Topic, at.Partition, at.Offset}, Event: at.ID, Err: err}
			}
			half := len(items) / 2
			if err := r.apply(ctx, items[:half]); err != nil {
				return err
			}
			return r.apply(ctx, items[half:])
		}
		if try == applyTries || !wait.sleep(ctx) {
			return err
		}
	}
}

func (r *rebuild) attempt(ctx context.Context, items []*item) error {
	ctx, cancel := context.WithTimeout(ctx, defaultTiming.attempt)
	defer cancel()
	tx, err := r.store.Begin(ctx)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	records := make([]Record, len(items))
	for i, it := range items {
		records[i] = it.rec
	}
	if err := r.handler.Apply(ctx, tx, records); err != nil {
		return err
	}
	return tx.Commit(ctx, "es_commit") // which a handler that appends does not find in the schema
}

func (r *rebuild) inspector(topic string) *inspector {
	return r.def.inspector(topic, r.opts.Registry, r.state != nil)
}

// chains says whether records of the topic name their predecessors.
func (in *inspector) chains() bool { return in.topic.Owner != "" && !in.topic.Compacted }
