package stream

import (
	"context"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/eventstore"
	"github.com/feira-shop/feira/shared/operator"
	"github.com/feira-shop/feira/shared/pg/pgtest"
)

// field is a database and a log, with operators that are called by hand instead of by the loop.
type field struct {
	t     *testing.T
	db    *pgtest.DB
	store *eventstore.Store
	rand  *rand.Rand
	name  string // of the operator
	from  Source
	w     Windows
	log   map[int32][]operator.Record
	at    map[int32]int // committed
	hands []*hand
}

// hand is a process: it owns some partitions until it is killed.
type hand struct {
	*windower[made]
	owns []int32
}

func newField(t *testing.T) *field {
	t.Helper()
	f := &field{t: t, db: pgtest.New(t, eventstore.Migrations(), operator.Migrations(), Migrations())}
	f.store = eventstore.New(f.db.Pool, eventstore.Options{Service: "tests", Registry: events.NewRegistry(clicked{}, windowClosed{})})
	return f
}

// begin starts an operator of a new name on empty partitions, each pair of owners a process of its own.
func (f *field) begin(name string, from Source, w Windows, owners ...[]int32) {
	f.t.Helper()
	f.name, f.from, f.w = name, from, w
	f.log, f.at, f.hands = map[int32][]operator.Record{}, map[int32]int{}, nil
	for _, owns := range owners {
		for _, p := range owns {
			f.own(name, p)
		}
		f.hands = append(f.hands, f.restored(owns))
	}
}

// own gives the operator a partition.
func (f *field) own(name string, partition int32) {
	f.t.Helper()
	f.exec(`insert into checkpoints (operator, topic, partition, next_offset, source_position, adopt, epoch, topic_id)
		values ($1, $2, $3, 0, 0, false, 1, '')`, name, clicks.Name, partition)
	f.log[partition] = nil
}

// restored is a process that has just started.
func (f *field) restored(owns []int32) *hand {
	f.t.Helper()
	h := &hand{newWindower(f.name, Sources{f.from}, f.w, totalOf(f.name)), owns}
	h.mostRows = 3
	for _, p := range owns {
		if err := h.Restore(f.t.Context(), f.db.Pool, operator.Claim{Topic: clicks.Name, Partition: p}); err != nil {
			f.t.Fatal(err)
		}
	}
	return h
}

func (f *field) exec(sql string, args ...any) {
	f.t.Helper()
	if _, err := f.db.Pool.Exec(f.t.Context(), sql, args...); err != nil {
		f.t.Fatalf("%s: %v", sql, err)
	}
}

// click puts an event at the end of a partition.
func (f *field) click(partition int32, key string, recorded, at time.Time) operator.Record {
	c := clicked{ID: uuid.NewString(), Key: key, At: at}
	return f.put(partition, events.Recorded{
		Meta: events.Meta{ID: c.ID, Time: at}, Type: c.EventType(), Key: key, RecordedAt: recorded, Event: c,
	})
}

func (f *field) tick(partition int32, at time.Time) {
	f.put(partition, events.Tick(clicks, partition, at))
}

func (f *field) put(partition int32, r events.Recorded) operator.Record {
	rec := operator.Record{Recorded: r, Topic: clicks.Name, Partition: partition, Offset: int64(len(f.log[partition]))}
	f.log[partition] = append(f.log[partition], rec)
	return rec
}

// batch has a process apply the next n records of some of its partitions; commit false rolls back.
func (f *field) batch(h *hand, n int, commit bool) {
	f.t.Helper()
	tx := f.open()
	defer tx.Rollback()
	var batch []operator.Record
	to := map[int32]int{}
	for _, p := range h.owns {
		to[p] = min(len(f.log[p]), f.at[p]+n)
		batch = append(batch, f.log[p][f.at[p]:to[p]]...)
	}
	if err := h.Apply(f.t.Context(), tx, batch); err != nil {
		f.t.Fatal(err)
	}
	if !commit {
		return
	}
	if err := tx.Commit(f.t.Context(), "op_commit", f.checkpoints(to)...); err != nil {
		f.t.Fatal(err)
	}
	maps.Copy(f.at, to)
}

func (f *field) open() *eventstore.Tx {
	f.t.Helper()
	tx, err := f.store.Begin(f.t.Context())
	if err != nil {
		f.t.Fatal(err)
	}
	return tx
}

// checkpoints are the arguments of op_commit.
func (f *field) checkpoints(to map[int32]int) []any {
	partitions := slices.Sorted(maps.Keys(to))
	n := len(partitions)
	topics, epochs, sources, adopt := make([]string, n), make([]int64, n), make([]int64, n), make([]bool, n)
	froms, tos := make([]int64, n), make([]int64, n)
	for i, p := range partitions {
		topics[i], epochs[i], froms[i], tos[i] = clicks.Name, 1, int64(f.at[p]), int64(to[p])
	}
	return []any{f.name, topics, partitions, epochs, froms, tos, sources, adopt}
}

// close has a process close what can be closed, at most most results, and says how many they were.
func (f *field) close(h *hand, most int, commit bool) int {
	f.t.Helper()
	n, err := h.Look(f.t.Context(), f.db.Pool, most)
	if err != nil {
		f.t.Fatal(err)
	}
	if n == 0 {
		return 0
	}
	if commit {
		if err := f.tryClose(h); err != nil {
			f.t.Fatal(err)
		}
		return n
	}
	tx := f.open()
	defer tx.Rollback()
	if err := h.Close(f.t.Context(), tx); err != nil {
		f.t.Fatal(err)
	}
	return n
}

// tryClose has a process say what it has found.
func (f *field) tryClose(h *hand) error {
	f.t.Helper()
	tx := f.open()
	defer tx.Rollback()
	if err := h.Close(f.t.Context(), tx); err != nil {
		return err
	}
	return tx.Commit(f.t.Context(), "op_commit", f.checkpoints(map[int32]int{0: f.at[0]})...)
}

// awaitLock waits until a statement waits for another's lock.
func (f *field) awaitLock(statement string) {
	f.t.Helper()
	deadline := time.Now().Add(patience)
	for f.count(`select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'
		and query like '%' || $1 || '%'`, statement) == 0 {
		if time.Now().After(deadline) {
			f.t.Fatalf("waited in vain for a lock of: %s", statement)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// finish applies and closes all that is left.
func (f *field) finish() {
	f.t.Helper()
	for i, h := range f.hands {
		f.hands[i] = f.restored(h.owns)
		f.batch(f.hands[i], 1<<20, true)
		f.hands[i].Settle(true)
	}
	for f.close(f.hands[0], 1000, true) > 0 {
		f.hands[0].Closed(true)
	}
}

func (f *field) count(sql string, args ...any) int {
	f.t.Helper()
	var n int
	if err := f.db.Pool.QueryRow(f.t.Context(), sql, args...).Scan(&n); err != nil {
		f.t.Fatalf("%s: %v", sql, err)
	}
	return n
}

// runQuietly starts an operator whose metrics nobody reads.
func (b *bed) runQuietly(def operator.Definition, member string) {
	o := operator.New(def, operator.Options{Store: b.store, Kafka: b.broker.Config("tests"), Member: member})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = o.Run(ctx)
	}()
	b.t.Cleanup(func() {
		cancel()
		<-done
	})
}
