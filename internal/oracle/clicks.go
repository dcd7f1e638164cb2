package oracle

import (
	"context"
	"fmt"
	"time"

	"github.com/IBM/sarama"
	"github.com/jackc/pgx/v5"

	"github.com/feira-shop/feira/services/analytics"
	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/kafka"
)

// clicksOperator counts clicks.
const clicksOperator = "analytics.clicks"

// checkClicks compares the clicks per action and minute with those on their topic: nobody's store has them. It reads as
// far as the operator has come, and compares nothing where the topic has forgotten its beginning, or there is no Kafka.
func (e *examiner) checkClicks(ctx context.Context, b *books) error {
	if e.kafka == nil {
		if e.unread != nil {
			b.notes = append(b.notes, "clicks are not compared: "+e.unread.Error())
		}
		return nil
	}
	found, perAction, until, err := e.countedClicks(ctx)
	if err != nil {
		return err
	}
	e.progress("reading " + events.Clicks.Name)
	want, sums := map[analytics.Cell]int64{}, map[string]int64{}
	for partition, end := range until {
		whole, err := eachClick(ctx, e.kafka, partition, end, func(c events.UserActed) {
			want[analytics.CellOf(c)]++
			sums[c.Action]++
		})
		if err != nil {
			return err
		}
		if !whole {
			b.notes = append(b.notes, "clicks are not compared: their topic no longer holds all of them")
			return nil
		}
	}
	compareWindows(b, found, want, "the topic gives")
	compareWindows(b, perAction, sums, "the topic gives")
	return nil
}

// countedClicks reads what was counted, and up to where on each partition, as of one moment.
func (e *examiner) countedClicks(ctx context.Context) (cells map[analytics.Cell]int64, perAction map[string]int64, until map[int32]int64, err error) {
	cells, perAction, until = map[analytics.Cell]int64{}, map[string]int64{}, map[int32]int64{}
	tx, err := e.pools["analytics"].BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly})
	if err != nil {
		return nil, nil, nil, err
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }()
	var cell analytics.Cell
	var action string
	var n, next int64
	var partition int32
	for _, read := range []struct {
		sql  string
		into []any
		each func()
	}{
		{`select action, minute, clicks from clicks_per_minute`, []any{&cell.Action, &cell.Minute, &n}, func() {
			cells[analytics.Cell{Action: cell.Action, Minute: cell.Minute.UTC()}] = n
		}},
		{`select action, clicks from clicks_per_action`, []any{&action, &n}, func() { perAction[action] = n }},
		{`select partition, next_offset from checkpoints where operator = '` + clicksOperator + `'`, []any{&partition, &next}, func() { until[partition] = next }},
	} {
		rows, err := tx.Query(ctx, read.sql)
		if err == nil {
			_, err = pgx.ForEachRow(rows, read.into, func() error { read.each(); return nil })
		}
		if err != nil {
			return nil, nil, nil, fmt.Errorf("read the clicks: %w", err)
		}
	}
	return cells, perAction, until, nil
}

// clicksAtOnce is how many records are taken from the topic at a time.
const clicksAtOnce = 1000

// eachClick reads a partition from its beginning to end, and says whether all of it is still there. What is no click was
// parked.
func eachClick(ctx context.Context, client sarama.Client, partition int32, end int64, fn func(events.UserActed)) (whole bool, err error) {
	r, err := kafka.OpenReader(client, events.Clicks.Name, partition, 0)
	if err != nil {
		return false, err
	}
	defer func() { _ = r.Close() }()
	if r.From > 0 || r.To < end {
		return false, nil
	}
	registry := events.NewRegistry()
	for at := r.From; at < end; {
		ctx, cancel := context.WithTimeout(ctx, time.Minute)
		records, err := r.Next(ctx, clicksAtOnce)
		cancel()
		if err != nil {
			return false, err
		}
		if len(records) == 0 {
			break
		}
		for _, m := range records {
			at = m.Offset + 1
			if c, ok := clickOf(registry, m); ok && m.Offset < end {
				fn(c)
			}
		}
	}
	return true, nil
}

// clickOf reads a record as the operator does.
func clickOf(registry *events.Registry, m *sarama.ConsumerMessage) (events.UserActed, bool) {
	headers := func(yield func(k, v []byte) bool) {
		for _, h := range m.Headers {
			if !yield(h.Key, h.Value) {
				return
			}
		}
	}
	var r events.Recorded
	var err error
	if events.IsPlain(headers) {
		r, err = events.FromPlain(events.Clicks, m.Partition, m.Offset, m.Key, m.Value, m.Timestamp)
	} else {
		r, err = events.FromHeaders(m.Key, m.Value, headers)
	}
	if err != nil {
		return events.UserActed{}, false
	}
	e, err := registry.Decode(r.Type, r.Data)
	c, ok := e.(events.UserActed)
	return c, ok && err == nil
}
