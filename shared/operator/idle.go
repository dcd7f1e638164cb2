package operator

import (
	"context"
	"errors"
	"time"

	"github.com/IBM/sarama"
)

// quiet says that a partition ended at an offset when it was asked, and that it got nothing for a while before.
type quiet struct {
	end int64
	at  time.Time // nothing is to come that is older than this
}

// stillness is what is known of a partition that may be idle.
type stillness struct {
	end    int64
	since  time.Time
	ticked time.Time
}

// watchIdle asks the broker for the ends of partitions whose ticks nobody else makes. It asks, instead of waiting for
// records: a broker that is down, or a consumer that is behind, must not pass for a topic on which nothing happens.
func (r *run) watchIdle(ctx context.Context) {
	known := map[*claim]stillness{}
	for sleep(ctx, r.op.timing.idle) {
		alive := map[*claim]stillness{}
		for _, c := range r.claims.sorted() {
			after := r.op.def.Idle[c.topic]
			if after <= 0 {
				continue
			}
			asked := time.Now()
			end, err := r.client.GetOffset(c.topic, c.partition, sarama.OffsetNewest)
			if err != nil {
				continue // not known to be idle
			}
			s, met := known[c]
			if !met || s.end != end {
				s = stillness{end: end, since: asked}
			}
			if asked.Sub(s.since) >= after && asked.Sub(s.ticked) >= after {
				s.ticked = asked
				c.quiet.Store(&quiet{end: end, at: asked.Add(-after)})
				r.kick()
			}
			alive[c] = s
		}
		known = alive
	}
}

// tick tells the handler how far event time has come in partitions that are idle and read to their ends. It is not tried
// again: another tick follows.
func (l *loop) tick(ctx context.Context) {
	var b batch
	for _, c := range l.takeable() {
		q := c.quiet.Swap(nil)
		if q == nil || !c.restored || c.at.next < q.end {
			continue
		}
		p := c.part()
		p.steps = append(p.steps, step{item: &item{rec: tick(c.topic, c.partition, c.at.next, q.at)}, fate: applied, to: c.at})
		b = append(b, p)
	}
	if len(b) == 0 {
		return
	}
	l.hand = hand{since: time.Now()}
	err := l.attempt(ctx, b, nil)
	switch {
	case errors.Is(err, errKilled):
		l.killed = true
	case err == nil || l.resolve(ctx, b, err) == outcomeCommitted:
		l.committed(ctx, b)
	default:
		l.settle(false)
		l.op.log.Warn("a tick of an idle partition was not taken note of", "error", err)
	}
}
