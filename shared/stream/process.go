package stream

import (
	"context"
	"encoding/json"
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
	now     func() time.Time
	metrics *metrics

	bytes   int  // of state, that the last Apply saved
	refused bool // the last attempt was rolled back
}

func newProcessor[S any](name string, from Source, rule Rule[S]) *processor[S] {
	return &processor[S]{name: name, from: from, rule: rule, shards: map[shardKey]*shard[S]{}, now: time.Now, metrics: newMetrics(name)}
}

var (
	_ operator.Stateful = (*processor[int])(nil)
	_ operator.Sized    = (*processor[int])(nil)
)

// Apply judges the batch on overlays and queues what it emits and the deltas.
func (p *processor[S]) Apply(ctx context.Context, tx *eventstore.Tx, batch []operator.Record) error {
	p.pending = map[shardKey]*overlay[S]{}
	said := answers{of: make(map[string]bool, len(batch))}
	for _, r := range batch {
		k := shardKey{r.Topic, r.Partition}
		o := p.pending[k]
		if o == nil {
			s := p.shards[k]
			if s == nil {
				return fmt.Errorf("stream %s: partition %s/%d was not restored before its first batch", p.name, r.Topic, r.Partition)
			}
			o = over(s)
			p.pending[k] = o
		}
		if err := p.one(&said, o, r.Recorded); err != nil {
			return err
		}
	}
	if err := p.say(ctx, tx, said); err != nil {
		return err
	}
	return p.save(tx)
}

func (p *processor[S]) one(said *answers, o *overlay[S], r events.Recorded) error {
	if r.Type == events.TickType {
		o.maxTime = max(o.maxTime, r.Time.UnixMicro())
		return nil
	}
	key := p.from.key(r)
	if key == "" {
		return nil
	}
	emitted := p.judge(o, key, r)
	for _, e := range emitted {
		if err := p.emit(said, r, e); err != nil {
			return err
		}
	}
	return nil
}

// judge is the whole of what an event costs in memory.
func (p *processor[S]) judge(o *overlay[S], key string, r events.Recorded) []events.Event {
	eventTime := p.from.time(r)
	if p.from.quarantines(r, eventTime) {
		o.quarantined++
		var none S
		_, emitted := p.rule.Apply(none, r, true)
		return emitted
	}
	at := eventTime.UnixMicro()
	late := at < o.maxTime-p.from.disorder.Microseconds()
	if late {
		o.late++
	}
	state, emitted := p.rule.Apply(o.get(key).state, r, late)
	o.set(key, entry[S]{state: state, until: micros(p.rule.Until(state))})
	o.maxTime = max(o.maxTime, at)
	return emitted
}

func micros(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMicro()
}

// answers are the appends of a batch. Each is the first and only one of its stream.
type answers struct {
	appends []eventstore.Append
	of      map[string]bool // streams
}

func (p *processor[S]) emit(said *answers, cause events.Recorded, e events.Event) error {
	stream := p.rule.Stream(e)
	if said.of[stream] {
		return nil // the first one stands
	}
	meta, err := events.Reply(cause, p.name, p.now())
	if err != nil {
		return err
	}
	encoded, err := eventstore.Encode(meta, e)
	if err != nil {
		return operator.Reject(err)
	}
	said.of[stream] = true
	said.appends = append(said.appends, eventstore.Append{Stream: stream, State: json.RawMessage(`{}`), Events: []eventstore.Event{encoded}})
	return nil
}

// say appends the answers. A stream that is there already had its answer, from this operator under an earlier name or
// before its state was lost; it stands. That is looked up only after a refused attempt, so it costs nothing as a rule.
func (p *processor[S]) say(ctx context.Context, tx *eventstore.Tx, said answers) error {
	var there map[string]eventstore.Stream
	if p.refused {
		names := make([]string, len(said.appends))
		for i, a := range said.appends {
			names[i] = a.Stream
		}
		var err error
		if there, err = tx.Load(ctx, names); err != nil {
			return err
		}
	}
	for _, a := range said.appends {
		if there[a.Stream].Version == 0 {
			tx.Append(a)
		}
	}
	return nil
}

// Settle ends the last batch.
func (p *processor[S]) Settle(committed bool) {
	p.refused = !committed
	if committed {
		for _, o := range p.pending {
			o.merge(p.from.disorder.Microseconds(), p.rule.Trim)
			p.metrics.judged(o.late, o.quarantined)
		}
		p.show()
	}
	p.pending = nil
}

// CheckpointBytes is the size of the deltas that the last Apply saved.
func (p *processor[S]) CheckpointBytes() int { return p.bytes }

// Release forgets a partition that is not owned any more.
func (p *processor[S]) Release(c operator.Claim) {
	delete(p.shards, shardKey{c.Topic, c.Partition})
	delete(p.pending, shardKey{c.Topic, c.Partition})
	p.show()
}
