package operator

import (
	"context"
	_ "embed"
	"fmt"
	"slices"
	"strconv"

	"github.com/IBM/sarama"
	"github.com/jackc/pgx/v5"
)

var (
	//go:embed queries/begin.sql
	beginSQL string
	//go:embed queries/raise.sql
	raiseSQL string
	//go:embed queries/settle_start.sql
	settleStartSQL string
)

// checkpoint is a row as its new owner finds it.
type checkpoint struct {
	Partition int32
	Next      int64
	Source    int64
	Adopt     bool
	Epoch     int64
	TopicID   string
}

// prepare makes the claims of a session ours: it raises the epoch of each checkpoint, so that commits of the
// last owner are refused, compares the checkpoints with the log, and seeks. The order matters: ends of the log
// are read after the epochs were raised, since until then the last owner may still move on.
func (m *membership) prepare(cs sarama.ConsumerGroupSession) error {
	partitions := slices.Sorted(slices.Values(cs.Claims()[m.topic.Name]))
	if len(partitions) == 0 {
		return nil // more members than partitions
	}
	ctx, cancel := context.WithTimeout(cs.Context(), setupTimeout)
	defer cancel()
	id, err := m.run.topicID(m.topic.Name)
	if err != nil {
		return err
	}
	if err := m.begin(ctx, id); err != nil {
		return err
	}
	rows, blocked, err := m.raise(ctx, partitions, id)
	if err != nil {
		return err
	}
	claims := make([]*claim, 0, len(rows))
	for _, row := range rows {
		if err := m.verify(ctx, &row, id); err != nil {
			return err
		}
		claims = append(claims, m.newClaim(cs, row, blocked[row.Partition]))
	}
	if err := m.forgetGone(ctx); err != nil {
		return err
	}
	if err := cs.Context().Err(); err != nil {
		return err
	}
	for _, c := range claims {
		cs.ResetOffset(m.topic.Name, c.partition, c.start, "") // moves back
		cs.MarkOffset(m.topic.Name, c.partition, c.start, "")  // moves forward
	}
	m.run.claims.add(claims)
	m.run.control.requests.Store(true) // what was asked for these partitions comes before their records
	m.run.setID(m.topic.Name, id)
	m.run.kick()
	m.run.op.log.Info("claims taken over", "topic", m.topic.Name, "generation", cs.GenerationID(), "partitions", partitions)
	return nil
}

// begin writes the first checkpoints of an operator on a topic, of all partitions at once: one that is added
// later is then known to be new, and read from its beginning even by operators that began with Now.
func (m *membership) begin(ctx context.Context, id string) error {
	pool := m.run.op.pool
	var begun bool
	err := pool.QueryRow(ctx, "select exists (select from checkpoints where operator = $1 and topic = $2)",
		m.run.op.def.Name, m.topic.Name).Scan(&begun)
	if err != nil || begun {
		return err
	}
	partitions, err := m.run.client.Partitions(m.topic.Name)
	if err != nil {
		return fmt.Errorf("partitions of %s: %w", m.topic.Name, err)
	}
	from := sarama.OffsetOldest
	if m.run.op.def.Start == Now {
		from = sarama.OffsetNewest
	}
	offsets := make([]int64, len(partitions))
	for i, p := range partitions {
		if offsets[i], err = m.run.client.GetOffset(m.topic.Name, p, from); err != nil {
			return fmt.Errorf("offset of %s/%d: %w", m.topic.Name, p, err)
		}
	}
	_, err = pool.Exec(ctx, beginSQL, m.run.op.def.Name, m.topic.Name, id, m.run.op.def.Start == Now, partitions, offsets)
	return err
}

// raise takes the rows over and reads what is parked, in one transaction: nobody else changes it any more.
func (m *membership) raise(ctx context.Context, partitions []int32, id string) ([]checkpoint, map[int32]map[string]int, error) {
	var rows []checkpoint
	blocked := map[int32]map[string]int{}
	err := pgx.BeginFunc(ctx, m.run.op.pool, func(tx pgx.Tx) error {
		found, err := tx.Query(ctx, raiseSQL, m.run.op.def.Name, m.topic.Name, partitions, id)
		if err != nil {
			return err
		}
		if rows, err = pgx.CollectRows(found, pgx.RowToStructByPos[checkpoint]); err != nil {
			return err
		}
		found, err = tx.Query(ctx, `select partition, key, count(*) from parked
			where operator = $1 and topic = $2 and partition = any($3) group by partition, key`,
			m.run.op.def.Name, m.topic.Name, partitions)
		if err != nil {
			return err
		}
		var partition int32
		var key []byte
		var n int
		_, err = pgx.ForEachRow(found, []any{&partition, &key, &n}, func() error {
			if blocked[partition] == nil {
				blocked[partition] = map[string]int{}
			}
			blocked[partition][string(key)] = n
			return nil
		})
		return err
	})
	if err == nil && len(rows) != len(partitions) {
		err = fmt.Errorf("checkpoints of %s: found %d of %d", m.topic.Name, len(rows), len(partitions))
	}
	return rows, blocked, err
}

// verify holds a checkpoint against the log. A row without a start or a topic id, as accept-gap leaves it, gets
// those of the log.
func (m *membership) verify(ctx context.Context, row *checkpoint, id string) error {
	r := m.run
	if row.TopicID != "" && row.TopicID != id {
		return &TopicReplacedError{Operator: r.op.def.Name, Topic: m.topic.Name, Partition: wholeTopic, Want: "topic id " + row.TopicID, Have: "topic id " + id}
	}
	first, err := r.client.GetOffset(m.topic.Name, row.Partition, sarama.OffsetOldest)
	if err != nil {
		return fmt.Errorf("first offset of %s/%d: %w", m.topic.Name, row.Partition, err)
	}
	end, err := r.client.GetOffset(m.topic.Name, row.Partition, sarama.OffsetNewest)
	if err != nil {
		return fmt.Errorf("end offset of %s/%d: %w", m.topic.Name, row.Partition, err)
	}
	if row.Next < 0 || row.TopicID == "" {
		if row.Next < 0 {
			row.Next = first
		}
		if _, err := r.op.pool.Exec(ctx, settleStartSQL, r.op.def.Name, m.topic.Name, row.Partition, row.Epoch, row.Next, id); err != nil {
			return err
		}
	}
	switch {
	case row.Next < first:
		return &HistoryLostError{Operator: r.op.def.Name, Topic: m.topic.Name, Partition: row.Partition, From: row.Next, To: first}
	case row.Next > end:
		return &TopicReplacedError{
			Operator: r.op.def.Name, Topic: m.topic.Name, Partition: row.Partition,
			Want: "a partition with at least " + strconv.FormatInt(row.Next, 10) + " records", Have: "one that ends at " + strconv.FormatInt(end, 10),
		}
	}
	return nil
}

func (m *membership) newClaim(cs sarama.ConsumerGroupSession, row checkpoint, blocked map[string]int) *claim {
	if blocked == nil {
		blocked = map[string]int{}
	}
	at := position{next: row.Next, source: row.Source, adopt: row.Adopt}
	c := &claim{
		place:    place{m.topic.Name, row.Partition},
		session:  cs,
		start:    row.Next,
		queue:    newQueue(queueBatches*m.run.op.maxBatch(), maxQueueBytes),
		ended:    make(chan struct{}),
		owned:    Claim{Topic: m.topic.Name, Partition: row.Partition, Epoch: row.Epoch},
		epoch:    row.Epoch,
		saved:    at,
		at:       at,
		blocked:  blocked,
		restored: m.run.op.stateful == nil,
	}
	for _, n := range blocked {
		c.parked.Add(int64(n))
	}
	c.done.Store(at.next)
	if m.topic.Owner == "" {
		clear(blocked)
	}
	delete(blocked, "") // records without a key block nobody
	return c
}
