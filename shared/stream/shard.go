package stream

import "time"

// second is the width of an expiry bucket, in microseconds.
const second = int64(time.Second / time.Microsecond)

// entry is the state of one key.
type entry[S any] struct {
	state S
	until int64 // event time up to which it is needed, microseconds since 1970
}

// shard is the state of one partition. It is changed only by committed batches.
type shard[S any] struct {
	keys    map[string]entry[S]
	maxTime int64 // highest event time seen; the watermark is this minus the disorder
	expires int64 // highest "until" ever saved: never falls, so that a delta row never outlives a newer one
	// buckets hold, by second, the keys to look at once the watermark has passed it.
	buckets map[int64][]string
	oldest  int64 // lowest bucket that may exist
}

func newShard[S any]() *shard[S] {
	return &shard[S]{keys: map[string]entry[S]{}, buckets: map[int64][]string{}}
}

// put stores a key's state, or forgets it when it is not needed any more.
func (s *shard[S]) put(key string, e entry[S], watermark int64) {
	if e.until < watermark || e.until == 0 {
		delete(s.keys, key)
		return
	}
	s.keys[key] = e
	b := e.until/second + 1
	s.buckets[b] = append(s.buckets[b], key)
	if s.oldest == 0 || b < s.oldest {
		s.oldest = b
	}
}

// free drops what is behind the watermark. Each key is looked at once per time it was put.
func (s *shard[S]) free(watermark int64, trim func(S, time.Time) S) {
	for ; s.oldest != 0 && s.oldest <= watermark/second; s.oldest++ {
		for _, key := range s.buckets[s.oldest] {
			e, ok := s.keys[key]
			switch {
			case !ok:
			case e.until < watermark:
				delete(s.keys, key)
			case trim != nil:
				e.state = trim(e.state, time.UnixMicro(watermark))
				s.keys[key] = e
			}
		}
		delete(s.buckets, s.oldest)
		if len(s.buckets) == 0 {
			s.oldest = 0
			return
		}
	}
}

// overlay is what a batch changes in a shard, until its transaction is known to be committed.
type overlay[S any] struct {
	base    *shard[S]
	changed map[string]entry[S]
	maxTime int64
	expires int64
	// Of this batch, for the metrics.
	late, quarantined int
}

func over[S any](s *shard[S]) *overlay[S] {
	return &overlay[S]{base: s, changed: map[string]entry[S]{}, maxTime: s.maxTime, expires: s.expires}
}

func (o *overlay[S]) get(key string) entry[S] {
	if e, ok := o.changed[key]; ok {
		return e
	}
	return o.base.keys[key]
}

func (o *overlay[S]) set(key string, e entry[S]) {
	o.changed[key] = e
	o.expires = max(o.expires, e.until)
}

// merge makes the batch's changes the shard's.
func (o *overlay[S]) merge(disorder int64, trim func(S, time.Time) S) {
	o.base.maxTime, o.base.expires = o.maxTime, o.expires
	watermark := o.maxTime - disorder
	for key, e := range o.changed {
		o.base.put(key, e, watermark)
	}
	o.base.free(watermark, trim)
}
