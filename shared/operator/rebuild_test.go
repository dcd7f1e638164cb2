package operator

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/eventstore"
	"github.com/feira-shop/feira/shared/kafka"
)

// tallies is a projection that shows whatever is lost or doubled, and that reads before it writes.
const tallies = `create table tallies (key text primary key, n bigint not null, last text not null, more json not null, id bigint generated always as identity)`

// tallier counts the events of each key.
type tallier struct {
	ledger // only for what it refuses

	mu      sync.Mutex
	holding chan struct{} // not nil: the next batch says here that it has read,
	release chan struct{} // and waits for this before it writes
}

func (h *tallier) Apply(ctx context.Context, tx *eventstore.Tx, b []Record) error {
	seen := map[string]int64{}
	rows, err := tx.Query(ctx, "select key, n from tallies")
	if err != nil {
		return err
	}
	var key string
	var n int64
	if _, err := pgx.ForEachRow(rows, []any{&key, &n}, func() error { seen[key] = n; return nil }); err != nil {
		return err
	}
	h.mu.Lock()
	holding, release := h.holding, h.release
	h.holding = nil
	h.mu.Unlock()
	if holding != nil {
		close(holding)
		<-release
	}
	for _, r := range b {
		h.ledger.mu.Lock()
		bad := h.reject[r.ID]
		h.ledger.mu.Unlock()
		if bad {
			return Reject(fmt.Errorf("event %s is not acceptable", r.ID))
		}
		seen[r.Key]++
		tx.Later(`insert into tallies (key, n, last, more) values ($1, $2, $3, '{"of": 1}')
			on conflict (key) do update set n = excluded.n, last = excluded.last`, r.Key, seen[r.Key], r.ID)
	}
	return nil
}

// hold has the next batch stop between reading and writing; held is closed when it does.
func (h *tallier) hold() (held <-chan struct{}, release func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.holding, h.release = make(chan struct{}), make(chan struct{})
	return h.holding, sync.OnceFunc(func() { close(h.release) })
}

func (w *world) tallying() (*tallier, Definition) {
	w.t.Helper()
	if _, err := w.db.Pool.Exec(context.Background(), tallies); err != nil {
		w.t.Fatal(err)
	}
	h := &tallier{}
	def := w.definition(h, facts)
	def.Name, def.Tables = "tests.tally", []string{"tallies"}
	return h, def
}

// rebuild rebuilds; reached is called at its steps.
func (w *world) rebuild(def Definition, store *eventstore.Store, dry bool, reached func(string) error) (Rebuilt, error) {
	w.t.Helper()
	client, err := kafka.NewClient(w.broker.Config("ana"))
	if err != nil {
		w.t.Fatal(err)
	}
	defer func() { _ = client.Close() }()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return Rebuild(ctx, def, RebuildOptions{
		Pool: w.db.Pool, Registry: w.store.Registry(), Client: client, Who: "ana", DryRun: dry, reached: reached,
		Owner: func(context.Context, events.Topic) (Owner, error) {
			return Owner{Topic: facts, Store: store, types: []string{happened{}.EventType()}}, nil
		},
	})
}

// damage makes rows of the projection wrong, unwanted and missing: one each, but of the wrong as many as are named.
func (w *world) damage(wrong string) {
	w.t.Helper()
	sql := `lock table tallies in share row exclusive mode;
		update tallies set n = n + 1000 where ` + wrong + `;
		delete from tallies where key = (select max(key) from tallies where key like 'key-%');
		insert into tallies (key, n, last, more) values ('ghost', 1, '', '{}') on conflict do nothing`
	if _, err := w.db.Pool.Exec(context.Background(), sql); err != nil {
		w.t.Fatal(err)
	}
}

// tallied demands that the projection is what the log alone gives, but for events left out.
func (w *world) tallied(log []*kgo.Record, without map[string]bool) {
	w.t.Helper()
	want := map[string]int64{}
	for _, r := range log {
		if !without[idOf(r)] {
			want[string(r.Key)]++
		}
	}
	rows, err := w.db.Pool.Query(context.Background(), "select key, n from tallies")
	if err != nil {
		w.t.Fatal(err)
	}
	found := map[string]int64{}
	var key string
	var n int64
	if _, err := pgx.ForEachRow(rows, []any{&key, &n}, func() error { found[key] = n; return nil }); err != nil {
		w.t.Fatal(err)
	}
	if !reflect.DeepEqual(found, want) {
		w.t.Errorf("the projection is\n%v\nand must be\n%v", found, want)
	}
}

func TestARebuildNamesWhatDiffersAndADryRunChangesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, facts)
	_, def := w.tallying()
	w.start(w.operator(def, "m1"))
	w.publishFacts(facts, 90)
	w.awaitCheckpoints(90)
	w.damage("key = (select min(key) from tallies)")
	before := w.contents()
	done, err := w.rebuild(def, nil, true, func(at string) error {
		if at != "caught up" {
			return nil
		}
		var running *RebuildRunningError
		if _, err := w.rebuild(def, nil, true, nil); !errors.As(err, &running) {
			t.Errorf("a second rebuild beside: %v", err)
		}
		return nil
	})
	if err != nil || done.Switched || done.Records != 90 {
		t.Fatalf("a dry run %+v, %v", done, err)
	}
	want := TableDifference{Table: "tallies", Rows: 18, Missing: 1, Excess: 1, Different: 1}
	got := done.Tables[0]
	said := strings.Join(got.Examples, "\n")
	for _, text := range []string{"must not be there: (ghost,1,", "is missing: (key-9,5,", "is (key-0,1005,", "must be (key-0,5,"} {
		if !strings.Contains(said, text) {
			t.Errorf("%q is not among the examples:\n%s", text, said)
		}
	}
	got.Examples = nil
	if !reflect.DeepEqual(got, want) {
		t.Errorf("found %+v, want %+v", got, want)
	}
	if after := w.contents(); !reflect.DeepEqual(before, after) {
		t.Error("a dry run changed something")
	}
	if done, err = w.rebuild(def, nil, false, nil); err != nil || !done.Switched || done.Same() {
		t.Fatalf("rebuilt %+v, %v", done, err)
	}
	w.publishFacts(facts, 18) // which the running operator applies to the new content
	w.awaitCheckpoints(108)
	if n := w.count("select count(*) from tallies where n <> 6"); n != 0 {
		t.Errorf("%d keys do not have six events", n)
	}
	if done, err = w.rebuild(def, nil, false, nil); err != nil || !done.Same() {
		t.Fatalf("rebuilt what is right: %+v, %v", done, err)
	}
}

// What is parked or was discarded was not applied by the running operator, and what was replayed meanwhile was.
func TestARebuildLeavesOutWhatIsParked(t *testing.T) {
	t.Parallel()
	w := newWorld(t, facts)
	h, def := w.tallying()
	log := w.publishFacts(facts, 90)
	given, kept, mended := idOf(log[0]), idOf(log[1]), idOf(log[2]) // the first events of key-0, key-1 and key-2
	h.refuse(given, kept, mended)
	w.start(w.operator(def, "m1"))
	w.awaitCheckpoints(90)
	ids, err := Discard(t.Context(), w.db.Pool, Selection{Operator: def.Name, Record: &Place{facts.Name, 0, 0}}, "ana")
	if err != nil {
		t.Fatal(err)
	}
	w.awaitRequests(ids)
	h.refuse(kept)
	replay := func(key string) {
		ids, err := Replay(t.Context(), w.db.Pool, Selection{Operator: def.Name, Key: []byte(key)}, "ana")
		if err != nil {
			t.Error(err)
		}
		w.awaitRequests(ids)
	}
	replay("key-0")
	once := sync.OnceFunc(func() { replay("key-2") })
	done, err := w.rebuild(def, nil, false, func(at string) error {
		if at == "caught up" {
			once()
		}
		return nil
	})
	if err != nil || !done.Same() || done.LeftOut != 6 {
		t.Fatalf("rebuilt %+v, %v", done, err)
	}
	without := map[string]bool{given: true}
	for _, r := range log {
		if string(r.Key) == "key-1" {
			without[idOf(r)] = true
		}
	}
	w.tallied(log, without)
}

// A stranger writes a record with the id of an event. It is parked; the event is applied, by a rebuild too.
func TestARebuildIsNotMisledByAStrangersRecord(t *testing.T) {
	t.Parallel()
	w := newWorld(t, facts)
	_, def := w.tallying()
	w.start(w.operator(def, "m1"))
	log := w.publishFacts(facts, 18)
	w.publish(with(log[3], events.HeaderSource, "/feira/somebody"), with(log[4], events.HeaderSource, "/feira/somebody"))
	w.awaitCheckpoints(20)
	ids, err := Discard(t.Context(), w.db.Pool, Selection{Operator: def.Name, Key: []byte("key-3")}, "ana")
	if err != nil {
		t.Fatal(err)
	}
	w.awaitRequests(ids)
	if done, err := w.rebuild(def, nil, false, nil); err != nil || !done.Same() || done.LeftOut != 2 {
		t.Errorf("rebuilt %+v, %v", done, err)
	}
	w.tallied(log, nil)
}

// What the topic no longer has comes from its owner's store.
func TestARebuildReadsTheStoreWhereTheTopicBeginsLater(t *testing.T) {
	t.Parallel()
	w := newWorld(t, facts)
	store, log := w.owner(100)
	_, def := w.tallying()
	w.publish(log...)
	w.start(w.operator(def, "m1"))
	w.awaitCheckpoints(100)
	of := map[int32]int64{}
	for _, r := range log {
		of[r.Partition]++
	}
	for p, n := range of {
		w.deleteBefore(facts, p, n/2)
	}
	w.damage("key = (select min(key) from tallies)")
	done, err := w.rebuild(def, store, false, nil)
	if err != nil || !done.Switched || done.Stored == 0 {
		t.Fatalf("rebuilt %+v, %v", done, err)
	}
	w.tallied(log, nil)
	var not *NotInStoreError
	if _, err := w.rebuild(def, newWorld(t).store, false, nil); !errors.As(err, &not) {
		t.Errorf("rebuilt from a store that has nothing: %v", err)
	}
}

func TestWhatCannotBeRebuiltSaysSo(t *testing.T) {
	t.Parallel()
	w := newWorld(t, facts)
	h, def := w.tallying()
	w.start(w.operator(def, "m1"))
	log := w.publishFacts(facts, 18)
	w.awaitCheckpoints(18)
	before := w.contents()
	for name, change := range map[string]func(*Definition){
		"it keeps no tables":                func(d *Definition) { d.Tables = nil },
		"it began in the middle":            func(d *Definition) { d.Start = Now },
		"effects has no primary key":        func(d *Definition) { d.Tables = []string{"effects"} },
		`relation "effects" does not exist`: func(d *Definition) { d.Handler = func(*eventstore.Store) Handler { return &ledger{} } },
		`type "es_appends" does not exist`: func(d *Definition) {
			l := &ledger{}
			appending(l)
			d.Handler = func(*eventstore.Store) Handler { return only(l.before) }
		},
	} {
		d := def
		change(&d)
		var not *NotRebuildableError
		if _, err := w.rebuild(d, nil, false, nil); !errors.As(err, &not) || !strings.Contains(err.Error(), name) {
			t.Errorf("%q is not said: %v", name, err)
		}
	}
	h.refuse(idOf(log[7])) // as a release that has become stricter
	var refused *RebuildRejectedError
	if _, err := w.rebuild(def, nil, false, nil); !errors.As(err, &refused) || refused.Event != idOf(log[7]) {
		t.Errorf("an event that was applied is refused now: %v", err)
	}
	if after := w.contents(); !reflect.DeepEqual(before, after) {
		t.Error("something was changed")
	}
}

// only is a handler of one function.
type only func(context.Context, *eventstore.Tx, []Record) error

func (f only) Apply(ctx context.Context, tx *eventstore.Tx, b []Record) error { return f(ctx, tx, b) }
