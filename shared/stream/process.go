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
}

var _ operator.Stateful = (*processor[int])(nil)

// Apply judges the batch on overlays and queues what it emits and the deltas.
func (p *processor[S]) Apply(_ context.Context, tx *eventstore.Tx, batch []operator.Record) error {
	p.pending = map[shardKey]*overlay[S]{}
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
		if err := p.one(tx, o, r.Recorded); err != nil {
			return err
		}
	}
	return p.save(tx)
}

func (p *processor[S]) one(tx *eventstore.Tx, o *overlay[S], r events.Recorded) error {
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
		if err := p.emit(tx, r, e); err != nil {
			return err
		}
	}
	return nil
}

// judge is the whole of what an event costs in memory.
func (p *processor[S]) judge(o *overlay[S], key string, r events.Recorded) []events.Event {
	at := p.from.time(r).UnixMicro()
	late := at < o.maxTime-p.from.disorder.Microseconds()
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

// emit appends an event as the first and only one of its stream: a second verdict would be refused.
func (p *processor[S]) emit(tx *eventstore.Tx, cause events.Recorded, e events.Event) error {
	meta, err := events.Reply(cause, p.name, p.now())
	if err != nil {
		return err
	}
	encoded, err := eventstore.Encode(meta, e)
	if err != nil {
		return operator.Reject(err)
	}
	tx.Append(eventstore.Append{Stream: p.rule.Stream(e), State: json.RawMessage(`{}`), Events: []eventstore.Event{encoded}})
	return nil
}

// Settle ends the last batch.
func (p *processor[S]) Settle(committed bool) {
	if committed {
		for _, o := range p.pending {
			o.merge(p.from.disorder.Microseconds(), p.rule.Trim)
		}
	}
	p.pending = nil
}

// Release forgets a partition that is not owned any more.
func (p *processor[S]) Release(c operator.Claim) {
	delete(p.shards, shardKey{c.Topic, c.Partition})
	delete(p.pending, shardKey{c.Topic, c.Partition})
}
