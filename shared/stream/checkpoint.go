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

// checkpoint is what a batch saves of a partition.
type checkpoint struct {
	shardKey
	delta                      []byte // empty when nothing changed
	seq                        int64  // of the row with the delta
	low                        int64  // rows before it go
	maxTime, expires           int64
	counted, late, quarantined int64
}

// checkpoints are those of the batch in hand, partition by partition in order.
func (p *processor[S]) checkpoints() ([]checkpoint, error) {
	all := make([]checkpoint, 0, len(p.pending))
	p.text = p.text[:0]
	for _, k := range slices.SortedFunc(maps.Keys(p.pending), compare) {
		o := p.pending[k]
		delta, err := p.delta(o)
		if err != nil {
			return nil, operator.Reject(fmt.Errorf("encode the state of %s/%d: %w", k.topic, k.partition, err))
		}
		all = append(all, checkpoint{
			shardKey: k, delta: delta, seq: o.base.log.next, low: o.base.log.low(p.watermark(o.maxTime)),
			maxTime: o.maxTime, expires: o.expires, counted: o.counted, late: o.late, quarantined: o.quarantined,
		})
	}
	return all, nil
}

// save queues the deltas, the watermarks and the counts of the batch.
func (p *processor[S]) save(tx *eventstore.Tx) error {
	all, err := p.checkpoints()
	if err != nil {
		return err
	}
	p.bytes = 0
	for _, c := range all {
		p.bytes += len(c.delta)
	}
	args, lows := saveArgs(p.name, all)
	tx.Later(saveSQL, args...)
	tx.Later(freeSQL, p.name, args[1], args[2], lows)
	if len(p.ledger.set) > 0 {
		tx.Later(lateSQL, lateArgs(p.name, p.ledger.set)...)
	}
	return nil
}

// saveArgs are the arguments of save.sql, and the ends of what free.sql takes away.
func saveArgs(operator string, all []checkpoint) (args []any, lows []int64) {
	n := len(all)
	topics, deltas, partitions := make([]string, n), make([][]byte, n), make([]int32, n)
	maxTimes, expires, seqs := make([]int64, n), make([]int64, n), make([]int64, n)
	counted, late, quarantined := make([]int64, n), make([]int64, n), make([]int64, n)
	lows = make([]int64, n)
	for i, c := range all {
		topics[i], partitions[i], deltas[i] = c.topic, c.partition, c.delta
		maxTimes[i], expires[i], seqs[i], lows[i] = c.maxTime, c.expires, c.seq, c.low
		counted[i], late[i], quarantined[i] = c.counted, c.late, c.quarantined
	}
	return []any{operator, topics, partitions, maxTimes, expires, deltas, seqs, counted, late, quarantined}, lows
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
	var r row
	var delta []byte
	_, err = pgx.ForEachRow(rows, []any{&r.seq, &r.expires, &delta}, func() error {
		return p.fold(s, r.seq, r.expires, delta)
	})
	if err != nil {
		return fmt.Errorf("restore the state of %s on %s/%d: %w", p.name, c.Topic, c.Partition, err)
	}
	p.restored(shardKey{c.Topic, c.Partition}, s)
	return nil
}

// restored has a partition begin with what was folded.
func (p *processor[S]) restored(k shardKey, s *shard[S]) {
	s.log.forget(s.log.low(p.watermark(s.maxTime)))
	p.shards[k] = s
	p.show()
}
