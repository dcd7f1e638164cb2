package stream

import (
	"math/bits"
	"slices"
	"time"
)

// second is the width of an expiry bucket, in microseconds.
const second = int64(time.Second / time.Microsecond)

// entry is the state of one key.
type entry[S any] struct {
	key   string // never empty
	state S
	until int64 // event time up to which it is needed, its timer included, microseconds since 1970
	due   int64 // event time behind which it can be trimmed or is not needed: until, or before
	timer int64 // event time at which it fires; 0: never
	visit int64 // the bucket in which it is looked at
	home  *row  // of the log, with its newest entry; nil: it is in none
	size  int   // bytes of that entry
}

// shard is the state of one partition. It is changed only by committed batches.
type shard[S any] struct {
	keys    table[S]
	maxTime int64 // highest event time seen; the watermark is this minus the disorder
	expires int64 // highest "until" ever saved: never falls, so that a delta row never outlives a newer one
	log     deltaLog
	timers  timers
	timed   int // keys with a timer

	// buckets hold, by second, the keys to look at once the watermark has passed it; a key is in one of them, or in
	// others too in which it is passed over.
	buckets map[int64]*pile
	order   []int64 // of the buckets, earliest first
	planned int     // keys in all buckets
}

func newShard[S any]() *shard[S] {
	return &shard[S]{keys: table[S]{at: map[string]place{}}, log: deltaLog{next: 1}, buckets: map[int64]*pile{}}
}

// put stores a key's state in place of the one that is there, if any.
func (s *shard[S]) put(e *entry[S], at place, there bool, watermark int64) place {
	b := bucket(e.due, watermark)
	if !there {
		e.visit = b
		at = s.keys.add(*e)
		s.plan(b, at)
	} else {
		old := s.keys.entry(at)
		s.leave(old)
		if e.visit = old.visit; e.due < old.due && b < old.visit {
			e.visit = b
			s.plan(b, at)
		}
		e.key = old.key // the same text, of which the map holds this copy
		*old = *e
	}
	s.log.enter(e.home, e.size)
	if e.timer != 0 {
		s.timed++
	}
	return at
}

// remove forgets a key.
func (s *shard[S]) remove(at place) {
	s.leave(s.keys.entry(at))
	s.keys.remove(at)
}

// leave is what an entry that goes leaves behind.
func (s *shard[S]) leave(e *entry[S]) {
	s.log.leave(e.home, e.size)
	if e.timer != 0 {
		s.timed--
	}
}

// bucket is the second after an event time, or, where that is far away, a little later: so there are few buckets however long
// states live, and a state is in memory at most 1/64 longer than it is needed.
func bucket(at, watermark int64) int64 {
	b := at/second + 1
	if far := b - watermark/second; far >= 128 {
		width := int64(1) << (bits.Len64(uint64(far)) - 7)
		b = (b + width - 1) / width * width
	}
	return b
}

func (s *shard[S]) plan(b int64, at place) {
	due := s.buckets[b]
	if due == nil {
		due = &pile{}
		s.buckets[b] = due
		i, _ := slices.BinarySearch(s.order, b)
		s.order = slices.Insert(s.order, i, b)
	}
	due.push(at)
	s.planned++
}

// free drops what is behind the watermark, and looks at no more than so many keys: the loop waits for it. It says how
// many it has looked at. That a state is gone shows in memory alone: one behind the watermark is none to the rule.
func (s *shard[S]) free(watermark int64, looks int, tidy func(*entry[S], int64)) int {
	looked := 0
	for len(s.order) > 0 {
		b := s.order[0]
		if b > watermark/second {
			break
		}
		for {
			if looked == looks {
				return looked
			}
			at, more := s.buckets[b].pop()
			if !more {
				break
			}
			looked++
			s.planned--
			s.look(b, at, watermark, tidy)
		}
		delete(s.buckets, b)
		s.order = s.order[1:]
	}
	s.replan(watermark)
	return looked
}

// look drops a key that is not needed any more; another is tidied, and looked at again when it is due. The place may be
// another key's by now: if that one is due in this bucket too, the second look finds it gone or due later.
func (s *shard[S]) look(b int64, at place, watermark int64, tidy func(*entry[S], int64)) {
	e := s.keys.entry(at)
	if e.key == "" || e.visit != b {
		return
	}
	if e.until < watermark {
		s.remove(at)
		return
	}
	tidy(e, watermark)
	e.visit = bucket(e.due, watermark)
	s.plan(e.visit, at)
}

// replan makes the buckets anew once most of what is in them is passed over: states that came and went.
func (s *shard[S]) replan(watermark int64) {
	if s.planned <= 2*s.keys.len()+1024 {
		return
	}
	clear(s.buckets)
	s.order, s.planned = s.order[:0], 0
	for at, e := range s.keys.all() {
		e.visit = bucket(e.due, watermark)
		s.plan(e.visit, at)
	}
}
