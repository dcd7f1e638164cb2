package stream

// change is what a batch makes of a key.
type change[S any] struct {
	now entry[S] // its size is that in the batch's row; 0: it is in none
	was bool     // the key has a state in memory
	in  place    // of it
}

// overlay is what a batch changes in a shard, until its transaction is known to be committed.
type overlay[S any] struct {
	base    *shard[S]
	at      map[string]int // in changes, by key
	changes []change[S]    // in the order in which keys were first met
	carried []change[S]    // states that are as they were, and are written again
	cleaned mark           // how far the log was cleaned
	row     *row           // what is saved; nil: nothing
	maxTime int64
	expires int64
	timers  timers  // set by the batch
	fired   []timer // taken from the shard's

	counted, late, quarantined int64 // events of this batch
}

func over[S any](s *shard[S]) *overlay[S] {
	o := &overlay[S]{at: map[string]int{}}
	o.begin(s)
	return o
}

// begin makes the overlay one of s.
func (o *overlay[S]) begin(s *shard[S]) {
	o.base, o.maxTime, o.expires, o.cleaned = s, s.maxTime, s.expires, s.log.cleaned
}

// empty lets go of everything but the room, for the next batch.
func (o *overlay[S]) empty() {
	clear(o.at)
	clear(o.changes)
	clear(o.carried)
	clear(o.timers)
	clear(o.fired)
	*o = overlay[S]{at: o.at, changes: o.changes[:0], carried: o.carried[:0], timers: o.timers[:0], fired: o.fired[:0]}
}

// get is the key's entry as it is now; nil: there is none.
func (o *overlay[S]) get(key string) *entry[S] {
	if i, ok := o.at[key]; ok {
		return &o.changes[i].now
	}
	if at, ok := o.base.keys.find(key); ok {
		return o.base.keys.entry(at)
	}
	return nil
}

// touch says where the key's change is; at first it is as in the shard.
func (o *overlay[S]) touch(key string) int {
	i, ok := o.at[key]
	if !ok {
		i = len(o.changes)
		c := change[S]{now: entry[S]{key: key}}
		if c.in, c.was = o.base.keys.find(key); c.was {
			c.now = *o.base.keys.entry(c.in)
		}
		c.now.home, c.now.size = nil, 0
		o.changes = append(o.changes, c)
		o.at[key] = i
	}
	return i
}

// merge makes the batch's changes the shard's.
func (o *overlay[S]) merge(watermark int64) {
	s := o.base
	s.maxTime, s.expires = o.maxTime, o.expires
	if o.row != nil {
		s.log.append(o.row)
	}
	s.log.cleaned = o.cleaned
	for _, list := range [][]change[S]{o.changes, o.carried} {
		for i := range list {
			o.enter(&list[i], watermark)
		}
	}
	for _, t := range o.timers {
		if at, ok := s.keys.find(t.key); ok && s.keys.entry(at).timer == t.at {
			s.timers.add(t)
		}
	}
	s.log.forget(s.log.low(watermark))
	s.retime()
}

// enter makes a change the shard's.
func (o *overlay[S]) enter(c *change[S], watermark int64) {
	if dead(c.now.until, watermark) {
		if c.was {
			o.base.remove(c.in)
		}
		return
	}
	if c.now.size > 0 {
		c.now.home = o.row
	}
	c.in = o.base.put(&c.now, c.in, c.was, watermark)
	if c.now.size > 0 {
		o.row.places = append(o.row.places, c.in)
	}
}

// discard gives the shard back what was taken from it.
func (o *overlay[S]) discard() {
	for _, t := range o.fired {
		o.base.timers.add(t)
	}
}
