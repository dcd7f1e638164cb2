package stream

import (
	"context"
	"embed"
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

// save queues the deltas, the watermarks and the counts of the batch, partition by partition in order.
func (p *processor[S]) save(tx *eventstore.Tx) error {
	n := len(p.pending)
	topics, entries, partitions := make([]string, 0, n), make([]string, 0, n), make([]int32, 0, n)
	maxTimes, expires, seqs, lows := make([]int64, 0, n), make([]int64, 0, n), make([]int64, 0, n), make([]int64, 0, n)
	counts := [3][]int64{}
	p.bytes = 0
	for _, k := range slices.SortedFunc(maps.Keys(p.pending), compare) {
		o := p.pending[k]
		delta, err := p.delta(o)
		if err != nil {
			return operator.Reject(fmt.Errorf("encode the state of %s/%d: %w", k.topic, k.partition, err))
		}
		p.bytes += len(delta)
		topics, partitions, entries = append(topics, k.topic), append(partitions, k.partition), append(entries, delta)
		maxTimes, expires = append(maxTimes, o.maxTime), append(expires, o.expires)
		seqs, lows = append(seqs, o.base.log.next), append(lows, o.base.log.low(p.watermark(o.maxTime)))
		for i, n := range []int64{o.counted, o.late, o.quarantined} {
			counts[i] = append(counts[i], n)
		}
	}
	tx.Later(saveSQL, p.name, topics, partitions, maxTimes, expires, entries, seqs, counts[0], counts[1], counts[2])
	tx.Later(freeSQL, p.name, topics, partitions, lows)
	if len(p.ledger.set) > 0 {
		tx.Later(lateSQL, lateArgs(p.name, p.ledger.set)...)
	}
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

// Restore reads a partition's deltas in order and folds them into memory.
func (p *processor[S]) Restore(ctx context.Context, q operator.Querier, c operator.Claim) error {
	s := newShard[S]()
	err := q.QueryRow(ctx, `select max_time, expires_at from stream_watermarks where operator = $1 and topic = $2 and partition = $3`,
		p.name, c.Topic, c.Partition).Scan(&s.maxTime, &s.expires)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return fmt.Errorf("read the watermark of %s on %s/%d: %w", p.name, c.Topic, c.Partition, err)
	}
	rows, err := q.Query(ctx, `select seq, expires_at, entries from stream_deltas where operator = $1 and topic = $2 and partition = $3 order by seq`,
		p.name, c.Topic, c.Partition)
	if err != nil {
		return fmt.Errorf("read the state of %s on %s/%d: %w", p.name, c.Topic, c.Partition, err)
	}
	watermark := p.watermark(s.maxTime)
	var seq, expires int64
	var delta []byte
	_, err = pgx.ForEachRow(rows, []any{&seq, &expires, &delta}, func() error {
		return p.fold(s, &row{seq: seq, expires: expires, bytes: len(delta)}, delta, watermark)
	})
	if err != nil {
		return fmt.Errorf("restore the state of %s on %s/%d: %w", p.name, c.Topic, c.Partition, err)
	}
	s.log.forget(s.log.low(watermark))
	p.shards[shardKey{c.Topic, c.Partition}] = s
	p.show()
	return nil
}
