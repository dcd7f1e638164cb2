package operator

import (
	"errors"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/IBM/sarama"

	"github.com/feira-shop/feira/shared/events"
)

// Why a record is parked.
const (
	reasonNotCloudEvent  = "not_cloudevent"
	reasonForeignSource  = "foreign_source"
	reasonUnknownVersion = "unknown_version"
	reasonInvalidData    = "invalid_data"
	reasonRejected       = "rejected" // by the handler
	reasonWaiting        = "waiting"  // behind a parked record of its key
)

// raw is a record as it is on the topic. Parked records are kept like this and read anew when they are
// replayed, perhaps by a release that understands them.
type raw struct {
	key, value []byte
	headers    []*sarama.RecordHeader
	timestamp  time.Time
}

func (r raw) pairs() iter.Seq2[[]byte, []byte] {
	return func(yield func([]byte, []byte) bool) {
		for _, h := range r.headers {
			if !yield(h.Key, h.Value) {
				return
			}
		}
	}
}

// item is a record and what can be said about it without the database.
type item struct {
	raw     raw
	rec     Record
	order   string // what of one order waits for what came before it; "": the record waits for none and holds up none
	after   int64  // offset after the record that its claim read before it
	size    int    // bytes, about
	fate    fate   // unless it is a duplicate
	reason  string
	problem string    // what is wrong, in words
	counted bool      // its sequence is the owner's and moves the source position
	chained bool      // its place in the chain can be checked
	clock   time.Time // how far time has come, from an event that is not applied; zero: it does not say
}

func (it *item) park(reason, problem string) {
	it.fate, it.reason, it.problem = parking, reason, problem
}

// inspector judges the records of one topic for one operator. It is used by one goroutine.
type inspector struct {
	topic    events.Topic
	registry *events.Registry
	types    []string        // nil: all
	names    map[string]bool // of types, without their versions
	ticks    bool            // the handler wants them
	clock    bool            // it wants them from events that it does not want, too
	seen     map[string]fate // what becomes of types that are not wanted
}

// Strangers may invent types without end.
const maxSeenTypes = 1000

func newInspector(topic events.Topic, registry *events.Registry, types []string, ticks bool) *inspector {
	in := &inspector{topic: topic, registry: registry, types: types, ticks: ticks, names: map[string]bool{}, seen: map[string]fate{}}
	for _, t := range types {
		in.names[typeName(t)] = true
	}
	return in
}

// inspector makes one for a topic of the operator.
func (d Definition) inspector(topic string, registry *events.Registry, stateful bool) *inspector {
	t := events.Topic{Name: topic}
	if i := slices.IndexFunc(d.Topics, func(t events.Topic) bool { return t.Name == topic }); i >= 0 {
		t = d.Topics[i]
	}
	in := newInspector(t, registry, d.Types, stateful)
	in.clock = stateful && d.Clock[topic]
	return in
}

// typeName cuts the version off: another version of a wanted type is wanted too, upcast or parked.
func typeName(typ string) string {
	if i := strings.LastIndex(typ, ".v"); i >= 0 {
		return typ[:i]
	}
	return typ
}

// inspect reads a record. The order of the questions matters: only a record with its owner's source may say
// anything about positions, or one that was injected could make later events look like duplicates.
func (in *inspector) inspect(r raw, partition int32, offset int64) item {
	rec, err := in.read(r, partition, offset)
	it := item{raw: r, size: len(r.key) + len(r.value) + 512}
	it.rec = Record{Recorded: rec, Topic: in.topic.Name, Partition: partition, Offset: offset}
	owned := in.topic.Owner != ""
	if owned { // strangers promise no order, and one bad record of theirs must not hold up the others
		it.order = string(r.key)
	}
	switch {
	case in.topic.Compacted && r.value == nil:
		in.tombstone(&it, err == nil)
	case err != nil:
		it.park(reasonNotCloudEvent, err.Error())
	case owned && rec.Source != in.topic.Source():
		it.park(reasonForeignSource, "its source is "+rec.Source+", but only "+in.topic.Source()+" may write to this topic")
	case owned && rec.Type == events.TickType:
		it.fate = filtered
		if in.ticks {
			it.fate = applied
		}
	case owned && rec.Sequence == 0:
		it.park(reasonNotCloudEvent, "its owner's source comes without "+events.HeaderSequence)
	case owned && !in.topic.Compacted && !rec.HasPrevious:
		it.park(reasonNotCloudEvent, "its owner's source comes without "+events.HeaderPrevious)
	default:
		it.counted = owned
		it.chained = owned && !in.topic.Compacted
		in.decode(&it)
		if in.clock && owned && (it.fate == filtered || it.fate == unknown) {
			it.clock = rec.Clock()
		}
	}
	return it
}

// tick tells a handler nothing but how far time has come in a partition.
func tick(topic string, partition int32, offset int64, at time.Time) Record {
	t := events.Tick(events.Topic{Name: topic}, partition, at)
	t.RecordedAt = time.Time{} // it was not recorded
	return Record{Recorded: t, Topic: topic, Partition: partition, Offset: offset}
}

// read takes the event from a record, with or without CloudEvents headers. When strangers recorded theirs, the broker
// knows better, where it stamps records itself.
func (in *inspector) read(r raw, partition int32, offset int64) (events.Recorded, error) {
	if in.topic.Plain != "" && events.IsPlain(r.pairs()) {
		return events.FromPlain(in.topic, partition, offset, r.key, r.value, r.timestamp)
	}
	rec, err := events.FromHeaders(r.key, r.value, r.pairs())
	if in.topic.Owner == "" && in.topic.LogAppendTime {
		rec.RecordedAt = r.timestamp.UTC()
	}
	return rec, err
}

func (in *inspector) tombstone(it *item, readable bool) {
	it.counted = readable && it.rec.Source == in.topic.Source()
	it.rec.Type, it.rec.Data = Tombstone, nil
	it.fate = filtered
	if in.types == nil || slices.Contains(in.types, Tombstone) {
		it.fate = applied
	}
}

func (in *inspector) decode(it *item) {
	if in.types != nil && !in.names[typeName(it.rec.Type)] {
		it.fate = in.unwanted(it.rec.Type)
		return
	}
	event, err := in.registry.Decode(it.rec.Type, it.rec.Data)
	var noType *events.UnknownTypeError
	var noVersion *events.UnknownVersionError
	switch {
	case err == nil:
		it.rec.Event, it.fate = event, applied
	case errors.As(err, &noType):
		it.fate = unknown
	case errors.As(err, &noVersion):
		it.park(reasonUnknownVersion, err.Error())
	default:
		it.park(reasonInvalidData, err.Error())
	}
}

// unwanted tells types that this operator passes over from those that nobody here knows.
func (in *inspector) unwanted(typ string) fate {
	if f, ok := in.seen[typ]; ok {
		return f
	}
	f := filtered
	var noType *events.UnknownTypeError
	if _, err := in.registry.Decode(typ, nil); errors.As(err, &noType) {
		f = unknown
	}
	if len(in.seen) < maxSeenTypes {
		in.seen[typ] = f
	}
	return f
}
