package stream

import "iter"

// place is where an entry is in a [table]. Once the entry is removed, it may become another one's: who follows a place
// looks whether the entry there is the one that was meant, a row by its home and a bucket by its visit.
type place uint32

// block is how many entries are made at once.
const block = 1024

// table holds the entries of a shard. Rows and buckets name an entry's place and not its key: a place is no pointer, and of
// pointers the garbage collector follows every one in each of its cycles. Entries never move, so the loop never waits for
// the copying of a million; the room of those that are removed is used again, not given back.
type table[S any] struct {
	at     map[string]place
	blocks []*[block]entry[S]
	ends   place // of all places that were ever given
	free   pile  // of those, the ones of entries that were removed
}

func (t *table[S]) len() int { return len(t.at) }

// entry is the one at a place; of a removed one its zero value.
func (t *table[S]) entry(at place) *entry[S] { return &t.blocks[at/block][at%block] }

// find says where a key's entry is.
func (t *table[S]) find(key string) (at place, there bool) {
	at, there = t.at[key]
	return at, there
}

// add gives a new entry a place.
func (t *table[S]) add(e entry[S]) place {
	at, again := t.free.pop()
	if !again {
		if at = t.ends; int(at/block) == len(t.blocks) {
			t.blocks = append(t.blocks, new([block]entry[S]))
		}
		t.ends++
	}
	*t.entry(at) = e
	t.at[e.key] = at
	return at
}

func (t *table[S]) remove(at place) {
	e := t.entry(at)
	delete(t.at, e.key)
	*e = entry[S]{}
	t.free.push(at)
}

// all are the entries with their places, in the order of the places.
func (t *table[S]) all() iter.Seq2[place, *entry[S]] {
	return func(yield func(place, *entry[S]) bool) {
		for at := range t.ends {
			if e := t.entry(at); e.key != "" && !yield(at, e) {
				return
			}
		}
	}
}
