package relay

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/kafka"
)

// A round reads at most this much.
const (
	maxEvents = 1000
	maxBytes  = 8 << 20 // of data, as the server stores it
	// rowOverhead is what the server may count in excess of an event's data.
	rowOverhead = 8
)

// batch is what a round has read.
type batch struct {
	records  []kafka.Record // those to be published
	at       []int64        // position of each
	spans    []sending      // of those whose trace is kept
	last     int64          // position of the last event, published or not
	recorded time.Time      // when that event was recorded
	rows     int
	bytes    int
	full     bool // there may be more
}

// publish goes round until something fails or ctx ends.
func (l *leader) publish(ctx context.Context) error {
	wake, pause := l.relay.wake(), l.relay.timing.retry
	for ctx.Err() == nil {
		more, err := l.round(ctx)
		var partial *kafka.PartialError
		switch {
		case errors.As(err, &partial): // Kafka's failure; the session is in order
			if ctx.Err() == nil {
				l.relay.log.Warn("publishing failed, trying again", "error", err, "position", l.position)
			}
			rest(ctx, pause, nil)
			pause = min(2*pause, 16*l.relay.timing.retry)
		case err != nil:
			return err
		default:
			pause = l.relay.timing.retry
			if !more {
				rest(ctx, l.relay.timing.gap, nil)
				rest(ctx, l.relay.timing.poll, wake)
			}
		}
		if time.Since(l.backlogAt) > l.relay.timing.ping {
			if err := l.measure(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// round publishes the next events. more tells that the store has others.
func (l *leader) round(ctx context.Context) (more bool, err error) {
	if err := l.count(ctx); err != nil {
		return false, err
	}
	idle := l.silent(time.Now())
	var now time.Time // nothing that the read will not see is older
	if len(idle) > 0 {
		if now, err = l.now(ctx); err != nil {
			return false, err
		}
	}
	b, err := l.read(ctx)
	if err != nil {
		return false, err
	}
	l.relay.metrics.rounds.Inc()
	if err := l.send(ctx, b); err != nil {
		return false, err
	}
	if len(idle) > 0 {
		if b.full {
			now = b.recorded // what comes later was also recorded later
		}
		if err := l.tick(ctx, idle, now); err != nil {
			return false, err
		}
	}
	return b.full, nil
}

// send publishes a batch and moves the cursor to just before the first event that is not acknowledged.
func (l *leader) send(ctx context.Context, b *batch) error {
	if b.rows == 0 {
		return nil
	}
	acked, position := len(b.records), b.last
	var failed error
	if len(b.records) > 0 {
		began := time.Now()
		l.relay.at(beforeSend)
		offsets, err := l.deliver(ctx, b.records)
		var partial *kafka.PartialError
		switch {
		case errors.As(err, &partial):
			acked, failed = partial.Acked, err
			position = max(b.at[acked]-1, l.position)
		case err != nil:
			return err
		}
		l.relay.at(afterAck)
		l.relay.metrics.published.Add(float64(acked))
		l.relay.metrics.batch.Observe(float64(acked))
		b.sent(l.relay.opts.Tracer, l.relay.opts.Topic.Name, acked, offsets, began)
		if err := l.advance(b, acked, offsets); err != nil {
			return err
		}
	}
	if position > l.position {
		if err := l.save(ctx, position); err != nil {
			return err
		}
	}
	return failed
}

// deliver sends records. The error is a [*kafka.PartialError] unless the session is lost.
func (l *leader) deliver(ctx context.Context, records []kafka.Record) (offsets []int64, err error) {
	err = l.alive(ctx, func(ctx context.Context) error {
		o, err := l.publisher.Send(ctx, l.relay.opts.Topic.Name, records)
		offsets = o
		return err
	})
	if err != nil {
		l.relay.metrics.errors.Inc()
	}
	return offsets, err
}

// advance takes note of what was acknowledged. A partition cannot get shorter: where it has, it is another one.
func (l *leader) advance(b *batch, acked int, offsets []int64) error {
	now := time.Now()
	for i := range acked {
		n := b.records[i].Partition
		p := &l.partitions[n]
		if offsets[i] >= 0 && offsets[i] < p.next {
			return &LogLostError{Topic: l.relay.opts.Topic.Name, Partition: n, End: offsets[i], Want: p.next}
		}
		p.last, p.changed, p.record = b.at[i], true, now
		if offsets[i] >= 0 { // else the older, lower one will do: more is compared than necessary
			p.next = offsets[i] + 1
		}
	}
	return nil
}

// save moves the cursor, together with what is known of each partition as of it.
func (l *leader) save(ctx context.Context, position int64) error {
	var numbers []int32
	var last, next []int64
	for i := range l.partitions {
		if p := &l.partitions[i]; p.changed {
			numbers, last, next = append(numbers, int32(i)), append(last, p.last), append(next, p.next)
		}
	}
	var moved int
	l.relay.at(beforeCursor)
	err := l.row(ctx, []any{&moved}, saveSQL, l.relay.opts.Topic.Name, l.term, l.position, position, numbers, last, next)
	if err != nil {
		return fmt.Errorf("relay: move the cursor: %w", err)
	}
	if moved != 1 {
		return errFenced
	}
	l.relay.at(afterCursor)
	l.position = position
	for i := range l.partitions {
		l.partitions[i].changed = false
	}
	return nil
}

// read makes records of the events after the cursor, each with the position of the one before it in its partition.
func (l *leader) read(ctx context.Context) (*batch, error) {
	ctx, cancel := l.call(ctx)
	defer cancel()
	rows, err := l.conn.Query(ctx, readSQL, l.position, l.limit, maxBytes)
	if err != nil {
		return nil, fmt.Errorf("relay: read the store: %w", err)
	}
	defer rows.Close()
	b := &batch{}
	topic, previous := l.relay.opts.Topic, make([]int64, len(l.partitions))
	for i := range previous {
		previous[i] = l.partitions[i].last
	}
	var meta []byte
	var headers []events.Header
	e := events.Recorded{Source: topic.Source(), HasPrevious: !topic.Compacted}
	for rows.Next() {
		var data []byte
		if err := rows.Scan(&e.Sequence, &e.Subject, &e.Type, &e.Key, &data, &meta, &e.RecordedAt); err != nil {
			return nil, fmt.Errorf("relay: read the store: %w", err)
		}
		b.rows++
		b.bytes += len(data) + rowOverhead
		b.last, b.recorded = e.Sequence, e.RecordedAt
		if !l.relay.publishes(e.Type) {
			continue
		}
		e.Meta = events.Meta{}
		if err := json.Unmarshal(meta, &e.Meta); err != nil {
			return nil, fmt.Errorf("relay: meta of the event at position %d: %w", e.Sequence, err)
		}
		n := kafka.Partition(e.Key, e.Sequence, l.counted)
		e.Previous, previous[n] = previous[n], e.Sequence
		b.trace(l.relay.opts.Tracer, &e)
		headers = events.AppendHeaders(headers[:0], e)
		b.records = append(b.records, kafka.Record{Partition: n, Key: e.Key, Value: data, Headers: headersOf(headers), Time: e.RecordedAt})
		b.at = append(b.at, e.Sequence)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("relay: read the store: %w", err)
	}
	b.full = b.rows == l.limit || b.bytes >= maxBytes
	return b, nil
}

// publishes tells whether events of a type go to the relay's topic.
func (r *Relay) publishes(typ string) bool {
	mine, known := r.mine[typ]
	if !known {
		topic, ok := events.TopicOf(typ)
		mine = ok && topic.Name == r.opts.Topic.Name
		r.mine[typ] = mine
	}
	return mine
}
