package kafka

import (
	"time"

	"github.com/IBM/sarama"
)

// A record batch must stay below the broker's limit, 1 MiB where nobody changed it.
const (
	batchBytes     = 900_000
	recordOverhead = 40 // lengths, deltas and attributes of a record, rounded up
	headerOverhead = 10
	maxBatch       = batchBytes + 100 // with the batch's own header
)

// delivery is one call of Send: what is still to be written, by partition, and what has been.
type delivery struct {
	topic   string
	queues  map[int32][]*batch // batches not yet acknowledged, in order
	offsets []int64            // by index of the record; -1: not known
}

// batch is a record batch as it goes over the wire, the same at each try.
type batch struct {
	wire  *sarama.RecordBatch
	index []int // of its records in the call
	bytes int
}

// cut groups records by partition and cuts them into batches of at most limit bytes, keeping their order.
func cut(topic string, records []Record, limit int) *delivery {
	d := &delivery{topic: topic, queues: map[int32][]*batch{}, offsets: make([]int64, len(records))}
	now := time.Now()
	for i := range records {
		r := &records[i]
		d.offsets[i] = -1
		at := r.Time
		if at.IsZero() {
			at = now
		}
		queue, size := d.queues[r.Partition], r.size()
		if len(queue) == 0 || queue[len(queue)-1].bytes+size > limit {
			queue = append(queue, newBatch(at))
			d.queues[r.Partition] = queue
		}
		queue[len(queue)-1].add(i, r, at, size)
	}
	return d
}

// acked is the length of the prefix of which every record is acknowledged.
func (d *delivery) acked() int {
	n := len(d.offsets)
	for _, queue := range d.queues {
		if len(queue) > 0 {
			n = min(n, queue[0].index[0])
		}
	}
	return n
}

// settle takes a partition's first batch as acknowledged; base is the offset of its first record or -1.
func (d *delivery) settle(partition int32, base int64) {
	queue := d.queues[partition]
	if base >= 0 {
		for i, index := range queue[0].index {
			d.offsets[index] = base + int64(i)
		}
	}
	if d.queues[partition] = queue[1:]; len(queue) == 1 {
		delete(d.queues, partition)
	}
}

func newBatch(at time.Time) *batch {
	return &batch{wire: &sarama.RecordBatch{Version: 2, FirstTimestamp: at, MaxTimestamp: at}}
}

func (b *batch) add(index int, r *Record, at time.Time, size int) {
	if at.After(b.wire.MaxTimestamp) {
		b.wire.MaxTimestamp = at
	}
	record := &sarama.Record{
		TimestampDelta: at.Truncate(time.Millisecond).Sub(b.wire.FirstTimestamp.Truncate(time.Millisecond)),
		OffsetDelta:    int64(len(b.index)),
		Value:          r.Value,
		Headers:        make([]*sarama.RecordHeader, len(r.Headers)),
	}
	if r.Key != "" {
		record.Key = []byte(r.Key)
	}
	for i := range r.Headers {
		record.Headers[i] = &r.Headers[i]
	}
	b.wire.Records = append(b.wire.Records, record)
	b.wire.LastOffsetDelta = int32(len(b.index))
	b.index = append(b.index, index)
	b.bytes += size
}

func (r *Record) size() int {
	n := recordOverhead + len(r.Key) + len(r.Value)
	for i := range r.Headers {
		n += headerOverhead + len(r.Headers[i].Key) + len(r.Headers[i].Value)
	}
	return n
}
