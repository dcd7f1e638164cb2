package operator

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/feira-shop/feira/shared/events"
)

func TestBadRecordsAreParkedAmongGoodOnes(t *testing.T) {
	t.Parallel()
	w := newWorld(t, facts)
	var log []*kgo.Record
	for i := range 1000 {
		log = append(log, w.fact(facts, 0, string(rune('a'+i%7))))
	}
	broken := func() *kgo.Record { return &kgo.Record{Topic: facts.Name, Partition: 0} }
	for i, bad := range []*kgo.Record{
		{Topic: facts.Name, Value: []byte{0xff}}, // no key: it blocks nobody
		{Topic: facts.Name, Value: []byte{}},
		broken(),
		{Topic: facts.Name, Key: []byte("x"), Value: log[0].Value},
		with(with(w.fact(facts, 1, "x"), events.HeaderSource, "/feira/somebody"), events.HeaderSequence, "999999"),
	} {
		log = insert(log, 100+i*150, bad)
	}
	// These have their place in the chain.
	log = append(log,
		with(w.fact(facts, 0, "y"), events.HeaderType, "shop.feira.thing.vanished.v1"),
		with(w.fact(facts, 0, "z"), events.HeaderType, "shop.feira.thing.happened.v9"),
		w.fact(facts, 0, "last"))
	for _, r := range log {
		r.Partition = 0
	}
	w.publish(log...)
	o := w.operator(w.definition(&ledger{}, facts), "m1")
	w.start(o)
	w.awaitEffects(1001)
	w.awaitCheckpoints(len(log))
	parked, err := ListParked(t.Context(), w.db.Pool, Selection{Operator: o.Name()}, 100)
	if err != nil {
		t.Fatal(err)
	}
	var reasons []string
	for _, p := range parked {
		reasons = append(reasons, p.Reason)
		if p.Error == "" {
			t.Errorf("offset %d is parked without an error", p.Offset)
		}
	}
	want := []string{reasonNotCloudEvent, reasonNotCloudEvent, reasonNotCloudEvent, reasonNotCloudEvent, reasonForeignSource, reasonUnknownVersion}
	if len(reasons) != len(want) {
		t.Fatalf("parked for %v, want %v", reasons, want)
	}
	for i := range want {
		if reasons[i] != want[i] {
			t.Errorf("parked for %v, want %v", reasons, want)
		}
	}
	if parked[0].Offset != 100 {
		t.Errorf("the first parked record is at %d, want 100", parked[0].Offset)
	}
	shown, err := ShowParked(t.Context(), w.db.Pool, o.Name(), Place{facts.Name, 0, 100})
	if err != nil || !bytes.Equal(shown.Value, []byte{0xff}) {
		t.Errorf("shown %v, %v", shown.Value, err)
	}
	if n := value(t, o.metrics.unknown); n != 1 {
		t.Errorf("%v unknown types counted, want 1", n)
	}
	if epochs := w.count("select max(epoch) from checkpoints"); epochs != 1 {
		t.Errorf("the group rebalanced: epoch %d", epochs)
	}
}

func insert(log []*kgo.Record, at int, r *kgo.Record) []*kgo.Record {
	return append(log[:at:at], append([]*kgo.Record{r}, log[at:]...)...)
}

// poisoned is a world where the second event of key "bad" cannot be applied.
func poisoned(t *testing.T) (*world, *ledger, *Operator, []*kgo.Record) {
	t.Helper()
	w := newWorld(t, facts)
	var log []*kgo.Record
	for range 50 {
		log = append(log, w.fact(facts, 0, "good"))
	}
	for range 5 {
		log = append(log, w.fact(facts, 0, "bad"))
	}
	for range 50 {
		log = append(log, w.fact(facts, 0, "good"))
	}
	w.publish(log...)
	l := &ledger{}
	l.refuse(idOf(log[51]))
	o := w.operator(w.definition(l, facts), "m1")
	w.start(o)
	w.awaitEffects(101) // all good ones, and the first of the bad key
	w.awaitCheckpoints(105)
	return w, l, o, log
}

func (w *world) awaitRequests(ids []int64) []Request {
	w.t.Helper()
	var found []Request
	w.await("requests finished", func() bool {
		var err error
		if found, err = Requests(context.Background(), w.db.Pool, ids); err != nil {
			w.t.Fatal(err)
		}
		for _, r := range found {
			if r.FinishedAt == nil {
				return false
			}
		}
		return true
	})
	return found
}

func (w *world) parkedReasons() []string {
	w.t.Helper()
	found, err := ListParked(context.Background(), w.db.Pool, Selection{Operator: "tests.ledger"}, 1000)
	if err != nil {
		w.t.Fatal(err)
	}
	var reasons []string
	for _, p := range found {
		reasons = append(reasons, p.Reason)
	}
	return reasons
}

func TestAPoisonedKeyWaitsAndIsReplayedInOrder(t *testing.T) {
	t.Parallel()
	w, l, o, _ := poisoned(t)
	if got := w.parkedReasons(); len(got) != 4 || got[0] != reasonRejected || got[1] != reasonWaiting || got[3] != reasonWaiting {
		t.Fatalf("parked %v", got)
	}
	w.publish(w.fact(facts, 0, "bad"), w.fact(facts, 0, "good")) // in a later batch
	w.awaitEffects(102)
	w.await("the later one parked", func() bool { return len(w.parkedReasons()) == 5 })

	// Still refused: it stays parked, and so do those behind it.
	ids, err := Replay(t.Context(), w.db.Pool, Selection{Operator: o.Name(), Key: []byte("bad")}, "ana")
	if err != nil {
		t.Fatal(err)
	}
	if r := w.awaitRequests(ids); r[0].Done != 0 || r[0].Failed != 1 {
		t.Errorf("request %+v", r[0])
	}
	if n := w.count("select attempts from parked where reason = 'rejected'"); n != 2 {
		t.Errorf("%d attempts, want 2", n)
	}
	w.exactlyOnce(102)

	// One that waits may not overtake.
	behind := &Place{facts.Name, 0, 53}
	ids, err = Replay(t.Context(), w.db.Pool, Selection{Operator: o.Name(), Record: behind}, "ana")
	if err != nil {
		t.Fatal(err)
	}
	if r := w.awaitRequests(ids); r[0].Done != 0 || r[0].Failed != 1 {
		t.Errorf("overtaking request %+v", r[0])
	}

	l.refuse()
	ids, err = Replay(t.Context(), w.db.Pool, Selection{Operator: o.Name()}, "bia")
	if err != nil {
		t.Fatal(err)
	}
	if r := w.awaitRequests(ids); r[0].Done != 5 || r[0].Failed != 0 {
		t.Errorf("request %+v", r[0])
	}
	w.exactlyOnce(107)
	if n := w.count(`select count(*) from operator_audit where action = 'replayed' and who = 'bia' and key = 'bad'`); n != 5 {
		t.Errorf("%d audit rows, want 5", n)
	}
	w.publish(w.fact(facts, 0, "bad")) // the key is free again
	w.awaitEffects(108)
	if n := w.count("select count(*) from parked"); n != 0 {
		t.Errorf("%d still parked", n)
	}
}

func TestADiscardedRecordFreesItsKey(t *testing.T) {
	t.Parallel()
	w, _, o, log := poisoned(t)
	ids, err := Discard(t.Context(), w.db.Pool, Selection{Operator: o.Name(), Record: &Place{facts.Name, 0, 51}}, "ana")
	if err != nil {
		t.Fatal(err)
	}
	w.awaitRequests(ids)
	w.exactlyOnce(101)
	ids, err = Replay(t.Context(), w.db.Pool, Selection{Operator: o.Name(), Key: []byte("bad")}, "ana")
	if err != nil {
		t.Fatal(err)
	}
	w.awaitRequests(ids)
	w.exactlyOnce(104)
	if n := w.count("select count(*) from effects where id = $1", idOf(log[51])); n != 0 {
		t.Error("the discarded record took effect")
	}
	if n := w.count("select count(*) from operator_audit where action = 'discarded' and who = 'ana'"); n != 1 {
		t.Errorf("%d audit rows of the discard, want 1", n)
	}
	var missing *NotFoundError
	if _, err := Replay(t.Context(), w.db.Pool, Selection{Operator: o.Name()}, "ana"); !errors.As(err, &missing) {
		t.Errorf("a replay of nothing: %v", err)
	}
	nowhere := &Place{Topic: facts.Name, Partition: 1, Offset: 7} // named as the command line takes it
	_, err = Replay(t.Context(), w.db.Pool, Selection{Operator: o.Name(), Record: nowhere}, "ana")
	if err == nil || !strings.Contains(err.Error(), "record "+facts.Name+"/1/7 of") {
		t.Errorf("a replay of a record that is not parked: %v", err)
	}
}

func TestParkedKeysOutliveARestart(t *testing.T) {
	t.Parallel()
	w := newWorld(t, facts)
	bad := w.fact(facts, 0, "bad")
	w.publish(bad)
	l := &ledger{}
	l.refuse(idOf(bad))
	stop := w.start(w.operator(w.definition(l, facts), "m1"))
	w.awaitCheckpoints(1)
	stop()
	w.publish(w.fact(facts, 0, "bad"), w.fact(facts, 0, "good"))
	l.refuse()
	w.start(w.operator(w.definition(l, facts), "m1"))
	w.awaitEffects(1)
	if got := w.parkedReasons(); len(got) != 2 {
		t.Errorf("parked %v, want the second behind the first", got)
	}
}
