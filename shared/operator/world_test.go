package operator

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/eventstore"
	"github.com/feira-shop/feira/shared/kafka"
	"github.com/feira-shop/feira/shared/kafka/kafkatest"
	"github.com/feira-shop/feira/shared/pg"
	"github.com/feira-shop/feira/shared/pg/pgtest"
)

// patience bounds what a test waits for, on a loaded machine.
const patience = 60 * time.Second

// happened is the only fact of these tests.
type happened struct {
	Key string `json:"key"`
	N   int    `json:"n"`
}

func (happened) EventType() string  { return "shop.feira.thing.happened.v1" }
func (h happened) EventKey() string { return h.Key }

var facts = events.Topic{Name: "facts", Owner: "facts", Partitions: 3, Retention: events.Forever}

var effectsSet = pg.Set{Name: "effects", FS: os.DirFS("testdata/migrations")}

// world is a database, a broker and a log that keeps the chain as a relay does.
type world struct {
	t      testing.TB
	db     *pgtest.DB
	store  *eventstore.Store
	broker *kafka.Embedded
	kafka  kafka.Config // leads to it
	client *kgo.Client
	seq    int64
	last   map[place]int64
}

func newWorld(tb testing.TB, topics ...events.Topic) *world {
	tb.Helper()
	w := &world{t: tb, last: map[place]int64{}}
	w.db = pgtest.New(tb, eventstore.Migrations(), Migrations(), effectsSet)
	w.store = w.newStore(w.db)
	w.broker = kafkatest.New(tb, topics...)
	w.kafka = w.broker.Config("tests")
	w.connect()
	return w
}

func (w *world) connect() {
	w.t.Helper()
	var err error
	w.client, err = kgo.NewClient(kgo.SeedBrokers(w.kafka.Brokers...), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(w.client.Close)
}

func (w *world) newStore(db *pgtest.DB) *eventstore.Store {
	return eventstore.New(db.Pool, eventstore.Options{Service: "tests", Registry: events.NewRegistry(happened{})})
}

// fact is the next event of a partition, chained as the relay does.
func (w *world) fact(topic events.Topic, partition int32, key string) *kgo.Record {
	w.seq++
	at := place{topic.Name, partition}
	data, err := json.Marshal(happened{Key: key, N: int(w.seq)})
	if err != nil {
		w.t.Fatal(err)
	}
	r := events.Recorded{
		Meta: events.Meta{ID: uuid.NewString(), Time: time.Now()}, Type: happened{}.EventType(), Source: topic.Source(),
		Subject: "thing-" + key, Key: key, Sequence: w.seq, Previous: w.last[at], HasPrevious: !topic.Compacted,
		RecordedAt: time.Now(), Data: data,
	}
	w.last[at] = w.seq
	return record(topic, partition, r)
}

func record(topic events.Topic, partition int32, r events.Recorded) *kgo.Record {
	out := &kgo.Record{Topic: topic.Name, Partition: partition, Value: r.Data}
	if r.Key != "" {
		out.Key = []byte(r.Key)
	}
	for _, h := range events.Headers(r) {
		out.Headers = append(out.Headers, kgo.RecordHeader{Key: h.Key, Value: []byte(h.Value)})
	}
	return out
}

func idOf(r *kgo.Record) string {
	for _, h := range r.Headers {
		if h.Key == events.HeaderID {
			return string(h.Value)
		}
	}
	return ""
}

func without(r *kgo.Record, header string) *kgo.Record { return with(r, header, "") }

// with replaces a header; "" takes it away.
func with(r *kgo.Record, header, value string) *kgo.Record {
	c := *r
	c.Headers = nil
	for _, h := range r.Headers {
		if h.Key != header {
			c.Headers = append(c.Headers, h)
		}
	}
	if value != "" {
		c.Headers = append(c.Headers, kgo.RecordHeader{Key: header, Value: []byte(value)})
	}
	return &c
}

func (w *world) publish(records ...*kgo.Record) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	copies := make([]*kgo.Record, len(records)) // the client writes to them
	for i, r := range records {
		c := *r
		copies[i] = &c
	}
	if err := w.client.ProduceSync(ctx, copies...).FirstErr(); err != nil {
		w.t.Fatalf("publish: %v", err)
	}
}

func (w *world) publishFacts(topic events.Topic, n int) []*kgo.Record {
	w.t.Helper()
	records := make([]*kgo.Record, n)
	for i := range records {
		records[i] = w.fact(topic, int32(i)%topic.Partitions, "key-"+strconv.Itoa(i%18))
	}
	w.publish(records...)
	return records
}

func (w *world) admin() *kadm.Client { return kadm.NewClient(w.client) }

// ledger writes one row per record.
type ledger struct {
	name   string               // signs the effects
	poison func(id string) bool // events that cannot be applied; nil: none but those refused
	mu     sync.Mutex
	reject map[string]bool                                                // ids
	before func(ctx context.Context, tx *eventstore.Tx, b []Record) error // nil: nothing
}

func (l *ledger) Apply(ctx context.Context, tx *eventstore.Tx, b []Record) error {
	l.mu.Lock()
	before := l.before
	l.mu.Unlock()
	if before != nil {
		if err := before(ctx, tx, b); err != nil {
			return err
		}
	}
	for _, r := range b {
		l.mu.Lock()
		bad := l.reject[r.ID] || l.poison != nil && l.poison(r.ID)
		l.mu.Unlock()
		if bad {
			return Reject(fmt.Errorf("event %s is not acceptable", r.ID))
		}
		tx.Later(`insert into effects (operator, topic, partition, "offset", key, id) values ($1, $2, $3, $4, $5, $6)`,
			l.name, r.Topic, r.Partition, r.Offset, r.Key, r.ID)
	}
	return nil
}

func (l *ledger) refuse(ids ...string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.reject = map[string]bool{}
	for _, id := range ids {
		l.reject[id] = true
	}
}

func (w *world) definition(h Handler, topics ...events.Topic) Definition {
	return Definition{Name: "tests.ledger", Topics: topics, Handler: func(*eventstore.Store) Handler { return h }}
}

// operator is one with little patience.
func (w *world) operator(def Definition, member string) *Operator {
	o := New(def, Options{Store: w.store, Kafka: w.kafka, Member: member})
	o.timing.control = 20 * time.Millisecond
	o.timing.guard = 50 * time.Millisecond
	o.timing.replacedGrace = 300 * time.Millisecond
	o.timing.lazy = 50 * time.Millisecond
	return o
}

// start runs an operator; stop ends it and waits. It is stopped when the test ends at the latest.
func (w *world) start(o *Operator) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = o.Run(ctx)
	}()
	stop = func() {
		cancel()
		<-done
	}
	w.t.Cleanup(stop)
	return stop
}

// await polls until ok says that it is so.
func (w *world) await(what string, ok func() bool) {
	w.t.Helper()
	deadline := time.Now().Add(patience)
	for !ok() {
		if time.Now().After(deadline) {
			w.t.Fatalf("waited in vain for: %s", what)
		}
		time.Sleep(5 * time.Millisecond) // between looks
	}
}

// awaitSignal waits for a channel that is closed.
func (w *world) awaitSignal(what string, signal <-chan struct{}) {
	w.t.Helper()
	select {
	case <-signal:
	case <-time.After(patience):
		w.t.Fatalf("waited in vain for: %s", what)
	}
}

func (w *world) count(sql string, args ...any) int {
	w.t.Helper()
	var n int
	if err := w.db.Pool.QueryRow(context.Background(), sql, args...).Scan(&n); err != nil {
		w.t.Fatalf("%s: %v", sql, err)
	}
	return n
}

func (w *world) effects() int { return w.count("select count(*) from effects") }

func (w *world) awaitEffects(n int) {
	w.t.Helper()
	w.await(fmt.Sprintf("%d effects", n), func() bool { return w.effects() >= n })
	w.exactlyOnce(n)
}

// exactlyOnce demands n effects, none twice, and in order in each partition.
func (w *world) exactlyOnce(n int) {
	w.t.Helper()
	if got := w.effects(); got != n {
		w.t.Fatalf("%d effects, want %d", got, n)
	}
	if twice := w.count("select count(*) from (select id from effects group by id having count(*) > 1) x"); twice != 0 {
		w.t.Fatalf("%d events took effect twice", twice)
	}
	if swapped := w.count(`select count(*) from (select "offset" < lag("offset") over (partition by topic, partition, key order by n) as back from effects) x where back`); swapped != 0 {
		w.t.Fatalf("%d effects out of order", swapped)
	}
}

// checkpointsAt waits until the sum of all next offsets is n.
func (w *world) awaitCheckpoints(n int) {
	w.t.Helper()
	w.await(fmt.Sprintf("checkpoints at %d in sum", n), func() bool {
		return w.count("select coalesce(sum(next_offset), 0) from checkpoints") == n
	})
}

// value reads a counter or gauge.
func value(tb testing.TB, m prometheus.Metric) float64 {
	tb.Helper()
	var out dto.Metric
	if err := m.Write(&out); err != nil {
		tb.Fatal(err)
	}
	return out.GetCounter().GetValue() + out.GetGauge().GetValue()
}

// gaugeOf finds one of the gauges that are computed when asked.
func gaugeOf(o *Operator, name string) prometheus.Metric {
	for _, c := range o.metrics.gauges {
		if m, ok := c.(prometheus.Metric); ok && strings.Contains(m.Desc().String(), `"feira_operator_`+name+`"`) {
			return m
		}
	}
	return nil
}
