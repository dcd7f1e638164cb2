package relay

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/IBM/sarama"
	"github.com/jackc/pgx/v5"

	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/eventstore"
	"github.com/feira-shop/feira/shared/kafka"
)

// Recovered is what a store got back from its log.
type Recovered struct {
	Events  int      // that the log has and the store had lost
	Streams []string // of these events, sorted: their states are to be computed anew
	Moved   int      // events that were written since, never published, and now follow those that came back
}

// Recover copies, into a store that was restored to an earlier state, the events that its log has beyond it: they were
// published and applied by others, so they stay facts. They come back at their positions, under their ids; each stream
// is left without a state that can be read, so it is folded anew. Events that were written since the restore were never
// published, so they move behind. dry only looks.
//
// What the store kept to itself is not on the log: use it where all of a service follows from its published events.
// Errors: [ErrLeading], [*NeverPublishedError], [*CompactedError], [*LogGapError], [*DivergedError].
func Recover(ctx context.Context, dsn string, cfg kafka.Config, topic events.Topic, dry bool, note Note) (Recovered, error) {
	if topic.Compacted {
		return Recovered{}, &CompactedError{Topic: topic.Name}
	}
	var r Recovered
	err := alone(ctx, dsn, func(tx pgx.Tx) error {
		// Nobody appends meanwhile.
		if _, err := tx.Exec(ctx, "select pg_advisory_xact_lock(es_lock_key())"); err != nil {
			return err
		}
		l, err := readLog(ctx, tx, cfg, topic)
		if err != nil {
			return err
		}
		r = Recovered{Events: len(l.lost), Streams: l.streams()}
		if len(l.lost) == 0 {
			return nil
		}
		unpublished, err := l.unpublished(ctx, tx, r.Streams)
		if err != nil {
			return err
		}
		if r.Moved = len(unpublished); dry {
			return nil
		}
		if err := l.write(ctx, tx, unpublished); err != nil {
			return err
		}
		return note(ctx, tx, fmt.Sprintf("%d events of %d streams from %s; %d moved", r.Events, len(r.Streams), topic.Name, r.Moved))
	})
	return r, err
}

// CompactedError says that a topic does not keep its history.
type CompactedError struct{ Topic string }

func (e *CompactedError) Error() string {
	return fmt.Sprintf("relay: %s is compacted, so it does not have the events that the store lost; restore a later backup", e.Topic)
}

// LogGapError says that the log, too, lacks events.
type LogGapError struct {
	Topic      string
	Partition  int32
	Have, Need int64 // positions: of the last event that both know, and of the one that the next record follows
}

func (e *LogGapError) Error() string {
	return fmt.Sprintf("relay: %s/%d has no events between the positions %d and %d; restore a later backup", e.Topic, e.Partition, e.Have, e.Need)
}

// DivergedError says that a stream went another way since the restore than before it. The events before it were
// applied by others, those since then were decided without them: a person must say what holds.
type DivergedError struct{ Stream string }

func (e *DivergedError) Error() string {
	return fmt.Sprintf("relay: since the restore, stream %s has other events than those that were published before it; "+
		"decide what holds of it, delete its unpublished events, and try again", e.Stream)
}

// lostLog is what was read from a log, as of the cursor.
type lostLog struct {
	topic  events.Topic
	cursor int64
	lost   []events.Recorded // by position
	known  map[int64]bool    // positions of events that log and store both have
}

func readLog(ctx context.Context, tx pgx.Tx, cfg kafka.Config, topic events.Topic) (*lostLog, error) {
	l := &lostLog{topic: topic, known: map[int64]bool{}}
	var partitions int32
	err := tx.QueryRow(ctx, "select position, partitions from relay_cursor where topic = $1", topic.Name).Scan(&l.cursor, &partitions)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, &NeverPublishedError{Topic: topic.Name}
	}
	if err != nil {
		return nil, err
	}
	kept := make([]partition, partitions)
	rows, err := tx.Query(ctx, "select partition, last_position, next_offset from relay_partitions where topic = $1", topic.Name)
	if err != nil {
		return nil, err
	}
	var n int32
	var p partition
	if _, err := pgx.ForEachRow(rows, []any{&n, &p.last, &p.next}, func() error { kept[n] = p; return nil }); err != nil {
		return nil, err
	}
	client, err := kafka.NewClient(cfg)
	if err != nil {
		return nil, err
	}
	defer func() { _ = client.Close() }()
	for n, p := range kept {
		if err := l.readPartition(ctx, tx, client, int32(n), p); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(l.lost, func(a, b events.Recorded) int { return int(a.Sequence - b.Sequence) })
	return l, nil
}

// readPartition follows the chain of a partition from where it was as of the cursor.
func (l *lostLog) readPartition(ctx context.Context, tx pgx.Tx, client sarama.Client, n int32, p partition) error {
	reader, err := kafka.OpenReader(client, l.topic.Name, n, p.next)
	if err != nil {
		return err
	}
	defer func() { _ = reader.Close() }()
	last := p.last
	for {
		records, err := reader.Next(ctx, maxEvents)
		if err != nil || len(records) == 0 {
			return err
		}
		var firsts []events.Recorded
		for _, m := range records {
			e, err := recorded(m)
			if err != nil || e.Sequence <= last || e.Source != l.topic.Source() { // a stranger, a tick, a repetition
				continue
			}
			if e.Previous > last {
				return &LogGapError{Topic: l.topic.Name, Partition: n, Have: last, Need: e.Previous}
			}
			last = e.Sequence
			firsts = append(firsts, e)
		}
		if err := l.sort(ctx, tx, firsts); err != nil {
			return err
		}
	}
}

// sort tells events that the store has from those that it lost.
func (l *lostLog) sort(ctx context.Context, tx pgx.Tx, all []events.Recorded) error {
	positions, ids := make([]int64, len(all)), make([]string, len(all))
	for i, e := range all {
		positions[i], ids[i] = e.Sequence, e.ID
	}
	rows, err := tx.Query(ctx, `select l.n::int from unnest($1::bigint[], $2::text[]) with ordinality l(position, id, n)
		left join events e on e.position = l.position
		where e.meta->>'id' is distinct from l.id and l.position > (select es_archived())`, positions, ids)
	if err != nil {
		return err
	}
	missing, err := pgx.CollectRows(rows, pgx.RowTo[int])
	if err != nil {
		return err
	}
	for _, e := range all {
		l.known[e.Sequence] = true
	}
	for _, n := range missing {
		l.lost = append(l.lost, all[n-1])
		delete(l.known, all[n-1].Sequence)
	}
	return nil
}

func (l *lostLog) streams() []string {
	var all []string
	for _, e := range l.lost {
		all = append(all, e.Subject)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// unpublished lists the positions of events that were written since the restore. None may be of a lost stream.
func (l *lostLog) unpublished(ctx context.Context, tx pgx.Tx, lost []string) ([]int64, error) {
	rows, err := tx.Query(ctx, "select position, stream from events where position > $1 order by position", l.cursor)
	if err != nil {
		return nil, err
	}
	var all []int64
	var position int64
	var stream string
	_, err = pgx.ForEachRow(rows, []any{&position, &stream}, func() error {
		if l.known[position] {
			return nil
		}
		if _, diverged := slices.BinarySearch(lost, stream); diverged {
			return &DivergedError{Stream: stream}
		}
		all = append(all, position)
		return nil
	})
	return all, err
}

// moveSQL gives events other positions.
const moveSQL = `with moved as (delete from events where position = any($2) returning *)
	insert into events (position, stream, version, type, key, data, meta, recorded_at) overriding system value
	select position + $1, stream, version, type, key, data, meta, recorded_at from moved order by position`

// write moves what is unpublished behind everything, and puts the lost events where they were.
func (l *lostLog) write(ctx context.Context, tx pgx.Tx, unpublished []int64) error {
	top, by := l.lost[len(l.lost)-1].Sequence, int64(0)
	if n := len(unpublished); n > 0 {
		top = max(top, unpublished[n-1])
		by = top - unpublished[0] + 1
	}
	if _, err := tx.Exec(ctx, "select es_make_parts($1, $2)", eventstore.PartSize, top+by); err != nil {
		return err
	}
	if by > 0 {
		if _, err := tx.Exec(ctx, moveSQL, by, unpublished); err != nil {
			return err
		}
	}
	versions, err := l.versions(ctx, tx)
	if err != nil {
		return err
	}
	rows := make([][]any, len(l.lost))
	for i, e := range l.lost {
		versions[e.Subject]++
		meta, err := json.Marshal(e.Meta)
		if err != nil {
			return err
		}
		rows[i] = []any{e.Sequence, e.Subject, versions[e.Subject], e.Type, e.Key, e.Data, meta, e.RecordedAt}
	}
	columns := []string{"position", "stream", "version", "type", "key", "data", "meta", "recorded_at"}
	if _, err := tx.CopyFrom(ctx, pgx.Identifier{"events"}, columns, pgx.CopyFromRows(rows)); err != nil {
		return err
	}
	for stream, version := range versions { // of no shape that a service has: it is folded anew before it is used
		_, err := tx.Exec(ctx, `insert into streams (stream, version, shape, state) values ($1, $2, 0, 'null')
			on conflict (stream) do update set version = excluded.version, shape = 0, state = 'null'`, stream, version)
		if err != nil {
			return err
		}
	}
	_, err = tx.Exec(ctx, "select setval(pg_get_serial_sequence('events', 'position'), (select max(position) from events))")
	return err
}

// versions is how far the lost streams are in the store.
func (l *lostLog) versions(ctx context.Context, tx pgx.Tx) (map[string]int64, error) {
	found := map[string]int64{}
	for _, stream := range l.streams() {
		found[stream] = 0
	}
	rows, err := tx.Query(ctx, "select stream, version from streams where stream = any($1) for update", l.streams())
	if err != nil {
		return nil, err
	}
	var stream string
	var version int64
	_, err = pgx.ForEachRow(rows, []any{&stream, &version}, func() error { found[stream] = version; return nil })
	return found, err
}
