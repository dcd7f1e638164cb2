package operator

import (
	"context"
	"encoding/json"
	"sync/atomic"
	"testing"

	"github.com/google/uuid"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/eventstore"
	"github.com/feira-shop/feira/shared/faulttest"
)

var points = []point{beforeBegin, afterApply, beforeCommit, afterCommit, afterMark}

// Killed between any two points, the database always shows exactly the effects up to its checkpoints.
func TestFaultKilledOperator(t *testing.T) {
	t.Parallel()
	run := faulttest.Begin(t, faulttest.Plan{
		Number: 4, Name: "Consumer kill matrix",
		Does: "an operator that writes rows, one that appends events and one with state in memory vanish at each of the five points " +
			"of a batch's life: the state is always that of the events up to the checkpoint, and in the end that of all",
	})
	kills := run.Times(3, 10)
	for name, handler := range map[string]func() Handler{
		"rows":   func() Handler { return &ledger{} },
		"events": func() Handler { return &tally{} },
		"memory": func() Handler { return &remembering{} },
	} {
		for _, at := range points {
			t.Run(name+" "+string(at), func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, facts)
				var log []*kgo.Record
				for kill := range kills {
					log = append(log, w.publishFacts(facts, 60)...)
					w.killedAt(at, int64(kill%2+1), handler())
					w.stateFollowsCheckpoints()
					w.tallyFollowsEffects(name == "events")
					run.Count("kills", 1)
				}
				last := handler()
				w.start(w.operator(w.definition(last, facts), "m1"))
				w.agrees(log, nil)
				w.tallyFollowsEffects(name == "events")
				if r, ok := last.(*remembering); ok {
					w.await("the memory", func() bool { return r.total() == len(log) })
				}
			})
		}
	}
}

// killedAt runs an operator that vanishes when it passes a point for the nth time.
func (w *world) killedAt(at point, nth int64, h Handler) {
	w.t.Helper()
	def := w.definition(h, facts)
	def.MaxBatch = 20
	o := w.operator(def, "m1")
	var hits atomic.Int64
	var dead atomic.Bool
	killed := make(chan struct{})
	o.hooks.dead = dead.Load
	o.hooks.reached = func(p point) error {
		if dead.Load() {
			return errKilled
		}
		if p == at && hits.Add(1) == nth {
			dead.Store(true)
			close(killed)
			return errKilled
		}
		return nil
	}
	stop := w.start(o)
	w.awaitSignal("the passage of "+string(at), killed)
	stop()
}

// stateFollowsCheckpoints demands the effects of exactly the records below each checkpoint, but for the parked.
func (w *world) stateFollowsCheckpoints() {
	w.t.Helper()
	wrong := w.count(`select count(*) from (
		select k.next_offset, count(e.n) as effects, count(e.n) filter (where e."offset" < k.next_offset) as below,
		       (select count(*) from parked p where p.topic = k.topic and p.partition = k.partition) as parked
		from checkpoints k left join effects e on e.topic = k.topic and e.partition = k.partition
		group by k.topic, k.partition, k.next_offset) x
		where next_offset <> effects + parked or effects <> below`)
	if wrong != 0 {
		w.t.Fatalf("%d partitions have effects that do not follow from their checkpoint", wrong)
	}
}

// tally is a ledger that appends an event to the stream of each key, as deciders do, for each of its records.
type tally struct{ ledger }

// counted is what a tally appends.
type counted struct {
	Key   string `json:"key"`
	Cause string `json:"cause"`
}

func (counted) EventType() string  { return "shop.feira.thing.counted.v1" }
func (c counted) EventKey() string { return c.Key }

func (t *tally) Apply(ctx context.Context, tx *eventstore.Tx, b []Record) error {
	appends := map[string]*eventstore.Append{}
	var streams []string
	for _, r := range b {
		name := "tally-" + r.Key
		if appends[name] == nil {
			appends[name] = &eventstore.Append{Stream: name, Shape: 1}
			streams = append(streams, name)
		}
		e, err := eventstore.Encode(events.Meta{ID: uuid.NewString(), Time: r.Time}, counted{Key: r.Key, Cause: r.ID})
		if err != nil {
			return err
		}
		appends[name].Events = append(appends[name].Events, e)
	}
	loaded, err := tx.Load(ctx, streams)
	if err != nil {
		return err
	}
	for _, name := range streams {
		a := appends[name]
		a.Expected = loaded[name].Version
		if a.State, err = json.Marshal(a.Expected + int64(len(a.Events))); err != nil {
			return err
		}
		tx.Append(*a)
	}
	return t.ledger.Apply(ctx, tx, b)
}

// tallyFollowsEffects demands the same events in each stream as there are effects of its key, in the same order, and a
// state that counts them.
func (w *world) tallyFollowsEffects(kept bool) {
	w.t.Helper()
	if !kept {
		return
	}
	wrong := w.count(`select count(*) from
		(select 'tally-' || key as stream, array_agg(id order by n) as causes from effects group by key) e
		full join (select stream, array_agg(data ->> 'cause' order by version) as causes from events group by stream) s using (stream)
		left join streams k using (stream)
		where e.causes is distinct from s.causes or k.version <> cardinality(e.causes) or k.state::text <> k.version::text`)
	if wrong != 0 {
		w.t.Fatalf("%d streams do not have the events of their effects", wrong)
	}
}
