package stream

// The delta log of a partition is cleaned as a log-structured store is: what is still needed of its oldest rows is
// written again, with a later batch, and the rows go. So states may live for days, and the log is as large as they are.

// leastCarried is how many keys a batch may carry forward at least; a larger batch, as many as it changed itself.
const leastCarried = 16

// row is what memory knows of a row of the log.
type row struct {
	seq     int64
	expires int64   // event time, as in the table
	bytes   int     // of its entries
	places  []place // of the keys that are in it, but for those that it says are gone
	live    int     // keys of which it holds the newest entry
	needed  int     // bytes of those entries
	gone    bool    // from the log
}

// mark is a point in the log: the n-th place of a row.
type mark struct {
	seq int64
	n   int
}

// deltaLog is what memory knows of the log of a partition.
type deltaLog struct {
	rows    []*row // oldest first
	next    int64  // seq of the next row
	bytes   int    // of all rows
	needed  int    // bytes of the entries that a restore would keep
	cleaned mark   // what is before it was carried forward, or needed no more
}

func (l *deltaLog) append(r *row) {
	l.rows = append(l.rows, r)
	l.bytes += r.bytes
	l.next = r.seq + 1
}

// wasteful: more than half of the log is dead.
func (l *deltaLog) wasteful() bool { return l.bytes > 2*l.needed }

// low is the seq of the first row that is needed. Rows go from the front only: a later one may say that a key of an
// earlier one is gone.
func (l *deltaLog) low(watermark int64) int64 {
	for _, r := range l.rows {
		if r.live > 0 && r.expires >= watermark {
			return r.seq
		}
	}
	return l.next
}

// forget drops the rows before low.
func (l *deltaLog) forget(low int64) {
	n := 0
	for ; n < len(l.rows) && l.rows[n].seq < low; n++ {
		r := l.rows[n]
		r.gone = true
		l.bytes -= r.bytes
		l.needed -= r.needed
		l.rows[n] = nil
	}
	l.rows = l.rows[n:]
}

// enter and leave keep count of the newest entries. An entry of a state that is in no row has no home.
func (l *deltaLog) enter(home *row, size int) {
	if home == nil {
		return
	}
	home.live++
	home.needed += size
	l.needed += size
}

func (l *deltaLog) leave(home *row, size int) {
	if home == nil || home.gone {
		return
	}
	home.live--
	home.needed -= size
	l.needed -= size
}

// carry chooses the keys that the batch carries forward, from the oldest row on, and notes how far it came. The work
// is bounded, dead keys included, since the loop waits for it.
func (o *overlay[S]) carry(watermark int64) {
	l := &o.base.log
	if !l.wasteful() {
		return
	}
	limit := max(leastCarried, len(o.changes))
	looks := 4 * limit
	for _, r := range l.rows {
		if r.seq < o.cleaned.seq {
			continue
		}
		if r.seq > o.cleaned.seq {
			o.cleaned = mark{seq: r.seq}
		}
		for ; o.cleaned.n < len(r.places); o.cleaned.n++ {
			if len(o.carried) == limit || looks == 0 {
				return
			}
			looks--
			at := r.places[o.cleaned.n]
			e := o.base.keys.entry(at) // another key's by now, perhaps: its home is a later row
			if e.home != r || e.until < watermark {
				continue
			}
			if _, changed := o.at[e.key]; !changed {
				o.carried = append(o.carried, change[S]{now: *e, was: true, in: at})
			}
		}
	}
}
