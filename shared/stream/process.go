package stream

import (
	"context"
	"fmt"
	"time"

	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/eventstore"
	"github.com/feira-shop/feira/shared/operator"
)

type shardKey struct {
	topic     string
	partition int32
}

// processor is one running stream operator. The operator loop calls it from one goroutine at a time.
type processor[S any] struct {
	name    string
	from    Source
	rule    Rule[S]
	shards  map[shardKey]*shard[S]
	pending map[shardKey]*overlay[S] // of the batch whose outcome is not known yet
	spare   []*overlay[S]            // whose room is used again
	now     func() time.Time
	ledger  *ledger // of the batch in hand
	metrics *metrics

	said    answers // of the batch in hand
	text    []byte  // of its deltas, used again
	bytes   int     // of state, that the last Apply saved
	refused bool    // the last attempt was rolled back
}

func newProcessor[S any](name string, from Source, rule Rule[S]) *processor[S] {
	return &processor[S]{
		name: name, from: from, rule: rule, now: time.Now, ledger: newLedger(), metrics: newMetrics(name),
		shards: map[shardKey]*shard[S]{}, pending: map[shardKey]*overlay[S]{},
	}
}

var (
	_ operator.Stateful = (*processor[int])(nil)
	_ operator.Sized    = (*processor[int])(nil)
)

// Apply judges the batch on overlays and queues what it emits and the deltas.
func (p *processor[S]) Apply(ctx context.Context, tx *eventstore.Tx, batch []operator.Record) error {
	p.said.begin()
	if err := p.hear(batch, p.emit); err != nil {
		return err
	}
	if err := p.say(ctx, tx); err != nil {
		return err
	}
	return p.save(tx)
}

// hear judges the batch in memory. What follows from a record is handed to emit.
func (p *processor[S]) hear(batch []operator.Record, emit func(events.Recorded, events.Event) error) error {
	p.discard() // a batch that lost a partition is applied again without having been settled
	p.ledger = newLedger()
	for i := range batch {
		r := &batch[i]
		o, err := p.overlay(shardKey{r.Topic, r.Partition})
		if err != nil {
			return err
		}
		emitted, err := p.one(o, r)
		if err != nil {
			return operator.Reject(err)
		}
		for _, e := range emitted {
			if err := emit(r.Recorded, e); err != nil {
				return err
			}
		}
	}
	return nil
}

// overlay is that of the batch in hand on a partition.
func (p *processor[S]) overlay(k shardKey) (*overlay[S], error) {
	if o := p.pending[k]; o != nil {
		return o, nil
	}
	s := p.shards[k]
	if s == nil {
		return nil, fmt.Errorf("stream %s: partition %s/%d was not restored before its first batch", p.name, k.topic, k.partition)
	}
	o := p.over(s)
	p.pending[k] = o
	return o, nil
}

func (p *processor[S]) over(s *shard[S]) *overlay[S] {
	n := len(p.spare)
	if n == 0 {
		return over(s)
	}
	o := p.spare[n-1]
	p.spare = p.spare[:n-1]
	o.begin(s)
	return o
}

// done lets go of an overlay.
func (p *processor[S]) done(o *overlay[S]) {
	o.empty()
	p.spare = append(p.spare, o)
}

// one applies a record, whatever it is, and fires what it makes due.
func (p *processor[S]) one(o *overlay[S], r *operator.Record) ([]events.Event, error) {
	var emitted []events.Event
	key := ""
	if r.Type != events.TickType {
		key = p.from.key(r.Recorded)
	}
	if key != "" {
		emitted = p.judge(o, key, r)
	} else if clock := p.from.clock(r.Recorded); !clock.IsZero() {
		o.maxTime = max(o.maxTime, clock.UnixMicro())
	}
	if p.rule.Timer == nil {
		return emitted, nil
	}
	fired, err := p.fire(o)
	return append(emitted, fired...), err
}

// judge is the whole of what an event costs in memory.
func (p *processor[S]) judge(o *overlay[S], key string, r *operator.Record) []events.Event {
	eventTime := p.from.time(r.Recorded)
	watermark := p.watermark(o.maxTime)
	at := eventTime.UnixMicro()
	if p.from.quarantines(r.Recorded, eventTime) {
		o.quarantined++
		p.ledger.note(*r, quarantined, key, eventTime, watermark)
		var none S
		_, emitted := p.rule.Apply(none, r.Recorded, true)
		return emitted
	}
	isLate := at < watermark
	if isLate {
		o.late++
		p.ledger.note(*r, late, key, eventTime, watermark)
	} else {
		o.counted++
	}
	i := o.touch(key)
	state, emitted := p.rule.Apply(p.needed(o.changes[i].now, watermark), r.Recorded, isLate)
	p.keep(o, i, state)
	o.maxTime = max(o.maxTime, at)
	return emitted
}

// needed is what a watermark leaves of a state. The rule sees no more than that: what memory still holds beyond it
// depends on batches and restarts.
func (p *processor[S]) needed(e entry[S], watermark int64) S {
	if dead(e.until, watermark) {
		var none S
		return none
	}
	return p.trimmed(e.state, watermark)
}

func (p *processor[S]) trimmed(state S, watermark int64) S {
	if p.rule.Trim == nil {
		return state
	}
	return p.rule.Trim(state, time.UnixMicro(watermark).UTC())
}

// keep enters what a state has become.
func (p *processor[S]) keep(o *overlay[S], i int, state S) {
	c := &o.changes[i]
	until, timer := micros(p.rule.Until(state)), int64(0)
	if p.rule.Timer != nil {
		if timer = micros(p.rule.Timer(state)); timer != 0 {
			until = max(until, timer)
		}
		o.set(c.now.key, timer, c.now.timer)
	}
	c.now.state, c.now.until, c.now.timer = state, until, timer
	p.plan(&c.now, p.watermark(o.maxTime))
	o.expires = max(o.expires, until)
}

// plan says when a state is due to be looked at, unless events change it until then.
func (p *processor[S]) plan(e *entry[S], watermark int64) {
	e.due = e.until
	if p.rule.TrimAt == nil {
		return
	}
	if at := micros(p.rule.TrimAt(e.state)); at > watermark && at < e.until {
		e.due = at
	}
}

// tidy lets go of what a state needs no more, and says when it is due again.
func (p *processor[S]) tidy(e *entry[S], watermark int64) {
	e.state = p.trimmed(e.state, watermark)
	p.plan(e, watermark)
}

func (p *processor[S]) watermark(maxTime int64) int64 {
	return maxTime - p.from.disorder.Microseconds()
}

func micros(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMicro()
}

// mostLooks bounds how many keys are looked at, after a batch, to free them: about a millisecond where each is in a
// corner of memory of its own. It is four times what a full batch adds, so freeing keeps up.
const mostLooks = 2048

// Settle ends the last batch.
func (p *processor[S]) Settle(committed bool) {
	p.refused = !committed
	if !committed {
		p.discard()
		return
	}
	looks := mostLooks
	for _, o := range p.pending {
		watermark := p.watermark(o.maxTime)
		o.merge(watermark)
		looks -= o.base.free(watermark, looks, p.tidy)
		p.metrics.judged(o.late, o.quarantined, len(o.carried))
		p.done(o)
	}
	clear(p.pending)
	p.show()
}

// discard forgets what the batch in hand would have changed.
func (p *processor[S]) discard() {
	for _, o := range p.pending {
		o.discard()
		p.done(o)
	}
	clear(p.pending)
}

// CheckpointBytes is the size of the deltas that the last Apply saved.
func (p *processor[S]) CheckpointBytes() int { return p.bytes }

// Release forgets a partition that is not owned any more.
func (p *processor[S]) Release(c operator.Claim) {
	delete(p.shards, shardKey{c.Topic, c.Partition})
	delete(p.pending, shardKey{c.Topic, c.Partition})
	p.show()
}
