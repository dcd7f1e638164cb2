package stream

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/operator"
)

var (
	_ operator.Recomputed = (*processor[int])(nil)
	_ operator.Agreeing   = (*processor[int])(nil)
)

// Recompute implements [operator.Recomputed]: one record is applied and merged at once. Nothing is saved of it, so no
// state has a place in the log.
func (p *processor[S]) Recompute(r operator.Record, emit func(string, events.Event) error) error {
	o := p.over(p.shard(operator.Claim{Topic: r.Topic, Partition: r.Partition}))
	emitted, err := p.one(o, &r)
	p.ledger.set = p.ledger.set[:0]
	if err != nil {
		return err
	}
	for _, e := range emitted {
		if err := emit(p.rule.Stream(e), e); err != nil {
			return err
		}
	}
	watermark := p.watermark(o.maxTime)
	o.merge(watermark)
	o.base.free(watermark, mostLooks, p.tidy)
	p.done(o)
	return nil
}

// Agree implements [operator.Agreeing].
func (p *processor[S]) Agree(said, again events.Event) bool {
	return p.rule.Agree != nil && p.rule.Agree(said, again)
}

// shard is that of a partition, empty at first.
func (p *processor[S]) shard(c operator.Claim) *shard[S] {
	k := shardKey{c.Topic, c.Partition}
	if p.shards[k] == nil {
		p.shards[k] = newShard[S]()
	}
	return p.shards[k]
}

// StateTables implements [operator.Recomputed].
func (p *processor[S]) StateTables() []string { return []string{"stream_deltas", "stream_watermarks"} }

// living are the states that can still matter, trimmed: when others are freed, and what of them, depends on batches.
func (p *processor[S]) living(s *shard[S]) map[string]entry[S] {
	watermark := p.watermark(s.maxTime)
	kept := map[string]entry[S]{}
	for _, e := range s.keys.all() {
		if !dead(e.until, watermark) {
			kept[e.key] = entry[S]{key: e.key, state: p.trimmed(e.state, watermark), until: e.until}
		}
	}
	return kept
}

// Differs implements [operator.Recomputed].
func (p *processor[S]) Differs(ctx context.Context, q operator.Querier, c operator.Claim) (operator.TableDifference, error) {
	d := operator.TableDifference{Table: fmt.Sprintf("state of %s/%d", c.Topic, c.Partition)}
	other := newProcessor(p.name, p.from, p.rule)
	if err := other.Restore(ctx, q, c); err != nil {
		return d, err
	}
	want, err := p.texts(p.shard(c))
	if err != nil {
		return d, err
	}
	have, err := p.texts(other.shard(c))
	if err != nil {
		return d, err
	}
	compareTexts(&d, have, want)
	d.Rows-- // the time is no row
	return d, nil
}

// texts are the needed states and the highest event time, by key, to be compared.
func (p *processor[S]) texts(s *shard[S]) (map[string]string, error) {
	texts := map[string]string{"\x00time": fmt.Sprintf("highest event time %d", s.maxTime)}
	for key, e := range p.living(s) {
		b, err := json.Marshal(saved[S]{Key: key, Until: e.until, State: e.state})
		if err != nil {
			return nil, err
		}
		texts[key] = string(b)
	}
	return texts, nil
}

// keysPerRow bounds what Replace writes at once: what a batch might change.
const keysPerRow = 1000

// Replace implements [operator.Recomputed]: the log begins anew with the whole state.
func (p *processor[S]) Replace(ctx context.Context, tx pgx.Tx, c operator.Claim) error {
	s := p.shard(c)
	living := p.living(s)
	rows := slices.Collect(slices.Chunk(slices.Sorted(maps.Keys(living)), keysPerRow))
	if len(rows) == 0 {
		rows = [][]string{nil} // the watermark is saved nevertheless
	}
	_, err := tx.Exec(ctx, "delete from stream_deltas where operator = $1 and topic = $2 and partition = $3", p.name, c.Topic, c.Partition)
	for i, keys := range rows {
		if err != nil {
			break
		}
		err = p.replaceRow(ctx, tx, c, int64(i+1), keys, living)
	}
	if err != nil {
		return fmt.Errorf("replace the state of %s on %s/%d: %w", p.name, c.Topic, c.Partition, err)
	}
	return nil
}

// replaceRow writes a row of the new log. The counts stay as they are.
func (p *processor[S]) replaceRow(ctx context.Context, tx pgx.Tx, c operator.Claim, seq int64, keys []string, living map[string]entry[S]) error {
	var text []byte
	for i, key := range keys {
		e, before := living[key], byte(',')
		if i == 0 {
			before = '['
		}
		var err error
		if text, err = appendEntry(append(text, before), &e, false); err != nil {
			return err
		}
	}
	if len(text) > 0 {
		text = append(text, ']')
	}
	s := p.shard(c)
	args, _ := saveArgs(p.name, []checkpoint{{
		shardKey: shardKey{c.Topic, c.Partition}, delta: text, seq: seq, maxTime: s.maxTime, expires: s.expires,
	}})
	_, err := tx.Exec(ctx, saveSQL, args...)
	return err
}
