package stream

import (
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/feira-shop/feira/shared/eventstore"
	"github.com/feira-shop/feira/shared/operator"
	"github.com/feira-shop/feira/shared/pg"
)

//go:embed migrations/*.sql
var migrations embed.FS

//go:embed sql/save.sql
var saveSQL string

//go:embed sql/free.sql
var freeSQL string

// Migrations are the tables of keyed state and watermarks.
func Migrations() pg.Set {
	sub, err := fs.Sub(migrations, "migrations")
	if err != nil {
		panic("shared/stream: " + err.Error()) // the folder is compiled in
	}
	return pg.Set{Name: "stream", FS: sub}
}

// saved is a key's state in a delta row.
type saved[S any] struct {
	Key   string `json:"k"`
	Until int64  `json:"u"`
	State S      `json:"s"`
}

// save queues the deltas and watermarks of the batch, partition by partition in order.
func (p *processor[S]) save(tx *eventstore.Tx) error {
	var topics, entries []string
	var partitions []int32
	var maxTimes, expires, watermarks []int64
	p.bytes = 0
	for _, k := range slices.SortedFunc(maps.Keys(p.pending), compare) {
		o := p.pending[k]
		delta, err := encode(o.changed)
		if err != nil {
			return operator.Reject(fmt.Errorf("encode the state of %s/%d: %w", k.topic, k.partition, err))
		}
		topics, partitions = append(topics, k.topic), append(partitions, k.partition)
		entries = append(entries, delta)
		p.bytes += len(delta)
		maxTimes, expires = append(maxTimes, o.maxTime), append(expires, o.expires)
		watermarks = append(watermarks, o.maxTime-p.from.disorder.Microseconds())
	}
	tx.Later(saveSQL, p.name, topics, partitions, maxTimes, expires, entries)
	tx.Later(freeSQL, p.name, topics, partitions, watermarks)
	return nil
}

func compare(a, b shardKey) int {
	if a.topic != b.topic {
		if a.topic < b.topic {
			return -1
		}
		return 1
	}
	return int(a.partition - b.partition)
}

func encode[S any](changed map[string]entry[S]) (string, error) {
	if len(changed) == 0 {
		return "", nil
	}
	list := make([]saved[S], 0, len(changed))
	for _, key := range slices.Sorted(maps.Keys(changed)) {
		e := changed[key]
		list = append(list, saved[S]{Key: key, Until: e.until, State: e.state})
	}
	b, err := json.Marshal(list)
	return string(b), err
}

// Restore reads a partition's deltas in order and folds them into memory.
func (p *processor[S]) Restore(ctx context.Context, q operator.Querier, c operator.Claim) error {
	s := newShard[S]()
	err := q.QueryRow(ctx, `select max_time, expires_at from stream_watermarks where operator = $1 and topic = $2 and partition = $3`,
		p.name, c.Topic, c.Partition).Scan(&s.maxTime, &s.expires)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return fmt.Errorf("read the watermark of %s on %s/%d: %w", p.name, c.Topic, c.Partition, err)
	}
	rows, err := q.Query(ctx, `select entries from stream_deltas where operator = $1 and topic = $2 and partition = $3 order by id`,
		p.name, c.Topic, c.Partition)
	if err != nil {
		return fmt.Errorf("read the state of %s on %s/%d: %w", p.name, c.Topic, c.Partition, err)
	}
	watermark := s.maxTime - p.from.disorder.Microseconds()
	var delta []byte
	_, err = pgx.ForEachRow(rows, []any{&delta}, func() error {
		var list []saved[S]
		if err := json.Unmarshal(delta, &list); err != nil {
			return err
		}
		for _, e := range list {
			s.put(e.Key, entry[S]{state: e.State, until: e.Until}, watermark)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("restore the state of %s on %s/%d: %w", p.name, c.Topic, c.Partition, err)
	}
	p.shards[shardKey{c.Topic, c.Partition}] = s
	p.show()
	return nil
}
