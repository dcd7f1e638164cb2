package stream

import (
	"cmp"
	"container/heap"
	"fmt"
	"time"

	"github.com/feira-shop/feira/shared/events"
)

// timer is when a key's state wants to be looked at. It counts only while the state still says so.
type timer struct {
	at  int64 // event time, microseconds since 1970
	key string
}

func (t timer) before(u timer) bool {
	return cmp.Or(cmp.Compare(t.at, u.at), cmp.Compare(t.key, u.key)) < 0
}

// timers is a heap, the earliest first.
type timers []timer

func (ts timers) Len() int           { return len(ts) }
func (ts timers) Less(i, j int) bool { return ts[i].before(ts[j]) }
func (ts timers) Swap(i, j int)      { ts[i], ts[j] = ts[j], ts[i] }

// Push and Pop are for the heap alone.
func (ts *timers) Push(x any) {
	if t, ok := x.(timer); ok {
		*ts = append(*ts, t)
	}
}

func (ts *timers) Pop() any {
	last := len(*ts) - 1
	t := (*ts)[last]
	(*ts)[last] = timer{}
	*ts = (*ts)[:last]
	return t
}

func (ts *timers) add(t timer) { heap.Push(ts, t) }

func (ts *timers) take() timer {
	t := (*ts)[0]
	heap.Pop(ts)
	return t
}

// A state would fire for ever.
type timerNotLaterError struct {
	key string
	at  time.Time
}

func (e *timerNotLaterError) Error() string {
	return fmt.Sprintf("the timer of %q at %s left a state that is due at the same time or before; Fire must move or end it",
		e.key, e.at.Format(time.RFC3339Nano))
}

// set enters a key's timer, unless it is where it was.
func (o *overlay[S]) set(key string, at, was int64) {
	if at != 0 && at != was {
		o.timers.add(timer{at, key})
	}
}

// due takes the earliest timer that the watermark has reached.
func (o *overlay[S]) due(watermark int64) (timer, bool) {
	from := &o.timers
	if base := o.base.timers; len(base) > 0 && (len(*from) == 0 || base[0].before((*from)[0])) {
		from = &o.base.timers
	}
	if len(*from) == 0 || (*from)[0].at > watermark {
		return timer{}, false
	}
	t := from.take()
	if from == &o.base.timers {
		o.fired = append(o.fired, t)
	}
	return t, true
}

// fire tells the rule of every timer that the watermark has reached, in the order of their times and keys. It is done
// after each record, so that what follows does not depend on batches. A state that is due already fires at once.
func (p *processor[S]) fire(o *overlay[S]) ([]events.Event, error) {
	if p.rule.Timer == nil {
		return nil, nil
	}
	watermark := p.watermark(o.maxTime)
	var all []events.Event
	for {
		t, ok := o.due(watermark)
		if !ok {
			return all, nil
		}
		if e := o.get(t.key); e == nil || e.timer != t.at {
			continue // it was moved or ended
		}
		at := time.UnixMicro(t.at).UTC()
		i := o.touch(t.key)
		state, said := p.rule.Fire(p.trimmed(o.changes[i].now.state, t.at), at)
		p.keep(o, i, state)
		if next := o.changes[i].now.timer; next != 0 && next <= t.at {
			return nil, &timerNotLaterError{t.key, at}
		}
		all = append(all, said...)
	}
}

// retime rebuilds the heap without the timers that count no more, once they are the most.
func (s *shard[S]) retime() {
	if len(s.timers) <= 2*s.timed+64 {
		return
	}
	s.timers = s.timers[:0]
	for _, e := range s.keys.all() {
		if e.timer != 0 {
			s.timers = append(s.timers, timer{e.timer, e.key})
		}
	}
	heap.Init(&s.timers)
}
