//go:build e2e

package flink

import (
	"encoding/json"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/feira-shop/feira/shared/events"
)

// topic turns a history into records of topic payments, as the relay of payments writes them: with positions and the
// chain of each partition, with ticks between them, and with the last records twice where a relay crashed.
type topic struct {
	history  *history
	dice     *rand.Rand
	position int64           // of the last event
	previous []int64         // the same, per partition
	last     [][]*kgo.Record // what a crash would repeat, per partition
	produce  func(*kgo.Record)

	repeats, ticks int
}

const (
	crashEvery = 20_000 // events, on average
	tickEvery  = 5_000
	batch      = 50 // records that may be sent twice
)

// publish hands out the records of the next facts, in order.
func (t *topic) publish(facts []fact) error {
	for _, f := range facts {
		t.position++
		r, err := t.record(t.position, f)
		if err != nil {
			return err
		}
		t.produce(r)
		if t.dice.IntN(crashEvery) == 0 {
			t.crash()
		}
		if t.dice.IntN(tickEvery) == 0 {
			t.tick(t.dice.Int32N(events.Payments.Partitions), f.arrives)
		}
	}
	return nil
}

// end says that nothing is to come.
func (t *topic) end() {
	t.crash()
	for p := range events.Payments.Partitions {
		t.tick(p, span+2*time.Hour) // so that all windows close
	}
}

func (t *topic) record(position int64, f fact) (*kgo.Record, error) {
	e, p := t.history.event(f), t.history.partition(f)
	data, err := json.Marshal(e)
	if err != nil {
		return nil, err
	}
	meta := events.Meta{ID: t.history.id("event", int(position)), Time: begins.Add(f.at), Correlation: t.history.orderName(f.payment), Actor: "payments"}
	r := record(events.Recorded{
		Meta: meta, Type: e.EventType(), Source: events.Payments.Source(), Subject: "payment-" + t.history.paymentName(f.payment), Key: e.EventKey(),
		Sequence: position, Previous: t.previous[p], HasPrevious: true, RecordedAt: begins.Add(f.arrives), Data: data,
	}, p)
	t.previous[p] = position
	t.last[p] = append(t.last[p], r)
	if len(t.last[p]) > 2*batch {
		t.last[p] = append(t.last[p][:0], t.last[p][batch:]...)
	}
	return r, nil
}

func record(r events.Recorded, partition int32) *kgo.Record {
	out := &kgo.Record{Topic: events.Payments.Name, Partition: partition, Value: r.Data}
	if r.Key != "" {
		out.Key = []byte(r.Key)
	}
	for _, h := range events.Headers(r) {
		out.Headers = append(out.Headers, kgo.RecordHeader{Key: h.Key, Value: []byte(h.Value)})
	}
	return out
}

// crash sends the last records of each partition again, as a relay does that did not save how far it had come.
func (t *topic) crash() {
	for _, last := range t.last {
		from := max(0, len(last)-1-t.dice.IntN(batch))
		for _, r := range last[from:] {
			again := *r // the client writes to what it sends
			t.produce(&again)
			t.repeats++
		}
	}
}

func (t *topic) tick(partition int32, at time.Duration) {
	t.produce(record(events.Tick(events.Payments, partition, begins.Add(at)), partition))
	t.ticks++
}

// publisher sends a history to a broker.
type publisher struct {
	*topic
	client *kgo.Client
	failed error
	mu     sync.Mutex
}

func newPublisher(t *testing.T, h *history, address string) *publisher {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(address), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.MaxBufferedRecords(100_000))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	n := int(events.Payments.Partitions)
	p := &publisher{client: client}
	p.topic = &topic{history: h, dice: rand.New(rand.NewPCG(h.seed, 1)), previous: make([]int64, n), last: make([][]*kgo.Record, n)}
	p.produce = func(r *kgo.Record) {
		client.Produce(t.Context(), r, func(_ *kgo.Record, err error) {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.failed = errors.Join(p.failed, err)
		})
	}
	return p
}

// send publishes facts and waits until the broker has them.
func (p *publisher) send(t *testing.T, facts []fact) {
	t.Helper()
	if err := p.publish(facts); err != nil {
		t.Fatal(err)
	}
	p.flush(t)
}

// finish publishes the end.
func (p *publisher) finish(t *testing.T) {
	t.Helper()
	p.end()
	p.flush(t)
}

func (p *publisher) flush(t *testing.T) {
	t.Helper()
	err := p.client.Flush(t.Context())
	p.mu.Lock()
	defer p.mu.Unlock()
	if err = errors.Join(err, p.failed); err != nil {
		t.Fatal(err)
	}
}
