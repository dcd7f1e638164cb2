package operator

import (
	"context"
	"fmt"
)

// forgetGone deletes the checkpoints of partitions that a topic does not have any more since it was made again, as
// accept-gap leaves them: without the topic's id. Who waits for all partitions, as windows do, would wait for them for ever.
// One of which events were applied stays: should the partition come back, its position tells which those were.
func (m *membership) forgetGone(ctx context.Context) error {
	pool, def := m.run.op.pool, m.run.op.def
	var some bool
	err := pool.QueryRow(ctx, "select exists (select from checkpoints where operator = $1 and topic = $2 and topic_id = '')",
		def.Name, m.topic.Name).Scan(&some)
	if err != nil || !some {
		return err
	}
	// What the client remembers may be of the old topic.
	if err := m.run.client.RefreshMetadata(m.topic.Name); err != nil {
		return fmt.Errorf("partitions of %s: %w", m.topic.Name, err)
	}
	partitions, err := m.run.client.Partitions(m.topic.Name)
	if err != nil {
		return fmt.Errorf("partitions of %s: %w", m.topic.Name, err)
	}
	gone, err := pool.Exec(ctx, `delete from checkpoints
		where operator = $1 and topic = $2 and topic_id = '' and source_position = 0 and not partition = any($3::int[])`, def.Name, m.topic.Name, partitions)
	if err != nil {
		return fmt.Errorf("forget partitions of %s: %w", m.topic.Name, err)
	}
	if n := gone.RowsAffected(); n > 0 {
		m.run.op.log.Info("forgot the partitions that the topic has no more", "topic", m.topic.Name, "partitions", n)
	}
	return nil
}
