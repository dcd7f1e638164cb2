package stream

import (
	_ "embed"
	"maps"
	"slices"
	"time"

	"github.com/feira-shop/feira/shared/eventstore"
	"github.com/feira-shop/feira/shared/operator"
)

var (
	//go:embed sql/late.sql
	lateSQL string
	//go:embed sql/count.sql
	countSQL string
	//go:embed sql/recount.sql
	recountSQL string
)

// fate is what becomes of an event.
type fate string

const (
	counted     fate = "counted"
	late        fate = "late"        // behind the watermark of its own partition
	quarantined fate = "quarantined" // its time is too far after that of its recording
)

// tally counts the events of a partition by their fate: none is dropped in silence.
type tally map[fate]int64

// ledger is what a batch made of its events: how many, and which did not count. It is saved in the batch's transaction.
type ledger struct {
	tallies map[shardKey]tally
	set     []setAside
}

// setAside is an event that did not count.
type setAside struct {
	shardKey
	offset        int64
	fate          fate
	key, id       string
	at, watermark int64 // microseconds since 1970
	recordedAt    int64 // 0: not known
}

func newLedger() *ledger { return &ledger{tallies: map[shardKey]tally{}} }

// note enters an event. watermark is that of its partition when it came, microseconds since 1970.
func (l *ledger) note(r operator.Record, f fate, key string, at time.Time, watermark int64) {
	p := shardKey{r.Topic, r.Partition}
	if l.tallies[p] == nil {
		l.tallies[p] = tally{}
	}
	l.tallies[p][f]++
	if f == counted {
		return
	}
	s := setAside{shardKey: p, offset: r.Offset, fate: f, key: key, id: r.ID, at: at.UnixMicro(), watermark: watermark}
	if !r.RecordedAt.IsZero() {
		s.recordedAt = r.RecordedAt.UnixMicro()
	}
	l.set = append(l.set, s)
}

// total is how many events had a fate.
func (l *ledger) total(f fate) int64 {
	n := int64(0)
	for _, t := range l.tallies {
		n += t[f]
	}
	return n
}

// save queues the ledger.
func (l *ledger) save(tx *eventstore.Tx, operator string) {
	if len(l.set) > 0 {
		tx.Later(lateSQL, lateArgs(operator, l.set)...)
	}
	if len(l.tallies) == 0 {
		return
	}
	var topics []string
	var partitions []int32
	var c, e, q []int64
	for _, p := range slices.SortedFunc(maps.Keys(l.tallies), compare) {
		t := l.tallies[p]
		topics, partitions = append(topics, p.topic), append(partitions, p.partition)
		c, e, q = append(c, t[counted]), append(e, t[late]), append(q, t[quarantined])
	}
	tx.Later(countSQL, operator, topics, partitions, c, e, q)
}

// lateArgs are the arguments of late.sql.
func lateArgs(operator string, set []setAside) []any {
	n := len(set)
	topics, partitions, offsets := make([]string, n), make([]int32, n), make([]int64, n)
	fates, keys, ids := make([]string, n), make([]string, n), make([]string, n)
	times, watermarks, recorded := make([]int64, n), make([]int64, n), make([]int64, n)
	for i, s := range set {
		topics[i], partitions[i], offsets[i] = s.topic, s.partition, s.offset
		fates[i], keys[i], ids[i] = string(s.fate), s.key, s.id
		times[i], watermarks[i], recorded[i] = s.at, s.watermark, s.recordedAt
	}
	return []any{operator, topics, partitions, offsets, fates, keys, ids, times, watermarks, recorded}
}
