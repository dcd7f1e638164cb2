package stream

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/eventstore"
	"github.com/feira-shop/feira/shared/operator"
	"github.com/feira-shop/feira/shared/pg/pgtest"
)

// made is what windows of these tests hold: how many, and how much.
type made struct {
	Count int `json:"n"`
	Sum   int `json:"sum"`
}

func (m made) add(o made) made { return made{m.Count + o.Count, m.Sum + o.Sum} }

// windowClosed is what is said of one.
type windowClosed struct {
	Key      string    `json:"key"`
	Start    time.Time `json:"start"`
	End      time.Time `json:"end"`
	Count    int       `json:"n"`
	Sum      int       `json:"sum"`
	Revision int       `json:"revision"`
}

func (windowClosed) EventType() string  { return "shop.feira.window.closed.v1" }
func (w windowClosed) EventKey() string { return w.Key }

// worth is what a click adds: something that follows from it and nothing else.
func worth(c clicked) int { return int(c.At.UnixMilli() % 97) }

func totalOf(prefix string) Aggregation[made] {
	return Aggregation[made]{
		Lift:  func(r events.Recorded, _ string) made { return made{1, worth(r.Event.(clicked))} },
		Merge: made.add,
		Event: func(r Result[made]) events.Event {
			return windowClosed{r.Key, r.Window.Start, r.Window.End, r.Value.Count, r.Value.Sum, r.Revision}
		},
		Stream: func(r Result[made]) string { return streamOf(prefix, r.Key, r.Window) },
	}
}

func streamOf(prefix, key string, w Window) string {
	return prefix + "-" + w.Start.Format(time.RFC3339) + "-" + key
}

// initials are the keys of a click: each of its letters.
func initials(r events.Recorded) []string {
	var keys []string
	for _, l := range r.Key {
		keys = append(keys, string(l))
	}
	return keys
}

func clicksIn(d time.Duration) Source {
	return From(clicks, clicked{}).KeysBy(initials).
		At(func(r events.Recorded) time.Time { return r.Event.(clicked).At }).Disorder(d)
}

// expected is what a naive computation that sorts and adds makes of a log: by stream.
type expected struct {
	results            map[string]made
	counts             map[fate]int
	late               map[string]fate // by event
	lowest             time.Time       // of all watermarks
	partitionsReported int
}

// naive computes what must be there: it walks each partition with its own watermark, then gives each event that counts
// to every window around it.
func naive(prefix string, from Source, w Windows, log map[int32][]operator.Record) expected {
	want := expected{results: map[string]made{}, counts: map[fate]int{}, late: map[string]fate{}}
	var kept []operator.Record
	for _, records := range log {
		highest := time.Time{}
		for _, r := range records {
			if r.Type == events.TickType {
				highest = latest(highest, r.Time)
				continue
			}
			at := r.Event.(clicked).At
			firstEnd := at.Truncate(w.slide).Add(w.slide)
			switch {
			case at.Sub(r.RecordedAt) > from.skew:
				want.late[r.ID] = quarantined
			case !highest.IsZero() && !firstEnd.Add(w.lateness).After(highest.Add(-from.disorder)):
				want.late[r.ID] = late
			default:
				kept = append(kept, r)
				want.counts[counted]++
				highest = latest(highest, at)
			}
			if f := want.late[r.ID]; f != "" {
				want.counts[f]++
			}
		}
		if mark := highest.Add(-from.disorder); want.partitionsReported == 0 || mark.Before(want.lowest) {
			want.lowest = mark
		}
		want.partitionsReported++
	}
	slices.SortFunc(kept, func(a, b operator.Record) int { return a.Event.(clicked).At.Compare(b.Event.(clicked).At) })
	for _, r := range kept {
		c := r.Event.(clicked)
		for start := c.At.Truncate(w.slide).Add(w.slide - w.size); !start.After(c.At); start = start.Add(w.slide) {
			for _, key := range named(initials(r.Recorded)) {
				name := streamOf(prefix, key, Window{Start: start})
				want.results[name] = want.results[name].add(made{1, worth(c)})
			}
		}
	}
	return want
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

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
			f.exec(`insert into checkpoints (operator, topic, partition, next_offset, source_position, adopt, epoch, topic_id)
				values ($1, $2, $3, 0, 0, false, 1, '')`, name, clicks.Name, p)
			f.log[p] = nil
		}
		f.hands = append(f.hands, f.restored(owns))
	}
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
	tx := f.open()
	defer tx.Rollback()
	if err := h.Close(f.t.Context(), tx); err != nil {
		f.t.Fatal(err)
	}
	if !commit {
		return n
	}
	if err := tx.Commit(f.t.Context(), "op_commit", f.checkpoints(map[int32]int{0: f.at[0]})...); err != nil {
		f.t.Fatal(err)
	}
	return n
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

// said are the results in the store, by stream, of the revision that stands.
func (f *field) said() map[string]windowClosed {
	f.t.Helper()
	return said(f.t, f.db, f.name)
}

func said(tb testing.TB, db *pgtest.DB, name string) map[string]windowClosed {
	tb.Helper()
	rows, err := db.Pool.Query(context.Background(), `select distinct on (stream) stream, data from events
		where stream like $1 || '-%' order by stream, version desc`, name)
	if err != nil {
		tb.Fatal(err)
	}
	all := map[string]windowClosed{}
	var stream string
	var w windowClosed
	if _, err := pgx.ForEachRow(rows, []any{&stream, &w}, func() error {
		all[stream] = w
		w = windowClosed{}
		return nil
	}); err != nil {
		tb.Fatal(err)
	}
	return all
}

// agrees demands what the naive computation says, of windows that have closed and in the ledger.
func (f *field) agrees() expected {
	f.t.Helper()
	want := naive(f.name, f.from, f.w, f.log)
	f.sameResults(want, 1)
	var received int
	got := map[fate]int{}
	var c, l, q int
	if err := f.db.Pool.QueryRow(f.t.Context(), `select sum(received), sum(counted), sum(late), sum(quarantined)
		from stream_watermarks where operator = $1`, f.name).Scan(&received, &c, &l, &q); err != nil {
		f.t.Fatal(err)
	}
	for what, n := range map[fate]int{counted: c, late: l, quarantined: q} {
		if n > 0 {
			got[what] = n
		}
	}
	if !maps.Equal(got, want.counts) || received != c+l+q {
		f.t.Errorf("of %d events received became %v, want %v", received, got, want.counts)
	}
	f.sameLate(want)
	return want
}

func (f *field) sameResults(want expected, revision int) {
	f.t.Helper()
	got := f.said()
	for name, w := range want.results {
		if g := got[name]; (made{g.Count, g.Sum}) != w || g.Revision != revision {
			f.t.Errorf("%s is %+v, want %+v in revision %d", name, g, w, revision)
		}
	}
	if len(got) != len(want.results) {
		f.t.Errorf("%d results, want %d", len(got), len(want.results))
	}
}

func (f *field) sameLate(want expected) {
	f.t.Helper()
	rows, err := f.db.Pool.Query(f.t.Context(), "select id, reason from stream_late where operator = $1", f.name)
	if err != nil {
		f.t.Fatal(err)
	}
	got := map[string]fate{}
	var id string
	var why fate
	if _, err := pgx.ForEachRow(rows, []any{&id, &why}, func() error {
		got[id] = why
		return nil
	}); err != nil {
		f.t.Fatal(err)
	}
	if !maps.Equal(got, want.late) {
		f.t.Errorf("%d events are in the table of late ones, want %d: %v", len(got), len(want.late), fmt.Sprint(got, want.late))
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
