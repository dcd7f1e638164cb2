package stream

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/eventstore"
	"github.com/feira-shop/feira/shared/kafka"
	"github.com/feira-shop/feira/shared/kafka/kafkatest"
	"github.com/feira-shop/feira/shared/operator"
	"github.com/feira-shop/feira/shared/pg/pgtest"
)

// patience bounds what a test waits for, on a loaded machine.
const patience = 60 * time.Second

func TestMain(m *testing.M) {
	pgtest.Main(m)
}

// The computation of these tests: a click less than the window from an earlier one of its key is a repeat of it.
const (
	window   = 5 * time.Second
	disorder = 10 * time.Second
)

var clicks = events.Topic{Name: "clicks", Owner: "clicks", Partitions: 3, Retention: events.Forever, Ticks: true}

type clicked struct {
	ID  string    `json:"id"`
	Key string    `json:"key"`
	At  time.Time `json:"at"`
}

func (clicked) EventType() string  { return "shop.feira.click.made.v1" }
func (c clicked) EventKey() string { return c.Key }

// judged is the verdict on a click: "", "late" or the id of the one it repeats.
type judged struct {
	ID      string `json:"id"`
	Verdict string `json:"verdict"`
}

func (judged) EventType() string  { return "shop.feira.click.judged.v1" }
func (j judged) EventKey() string { return j.ID }

type recent []clicked

func near(a, b time.Time) bool { return a.Sub(b).Abs() < window }

func judge(kept recent, r events.Recorded, late bool) (recent, []events.Event) {
	c := r.Event.(clicked)
	verdict := judged{ID: c.ID}
	for _, k := range kept {
		if verdict.Verdict == "" && near(k.At, c.At) {
			verdict.Verdict = k.ID
		}
	}
	if late {
		verdict.Verdict = "late"
	}
	return append(kept[:len(kept):len(kept)], c), events.List(verdict)
}

func (kept recent) until() time.Time {
	var last time.Time
	for _, c := range kept {
		if c.At.After(last) {
			last = c.At
		}
	}
	return last.Add(window)
}

func (kept recent) trim(watermark time.Time) recent {
	var left recent
	for _, c := range kept {
		if !c.At.Add(window).Before(watermark) {
			left = append(left, c)
		}
	}
	return left
}

func definition(name string) operator.Definition {
	from := From(clicks, clicked{}).
		KeyBy(func(r events.Recorded) string { return r.Key }).
		At(func(r events.Recorded) time.Time { return r.Event.(clicked).At }).
		Disorder(disorder)
	def := from.Process(name, Rule[recent]{
		Apply: judge, Until: recent.until, Trim: recent.trim,
		Stream: func(e events.Event) string { return "verdict-" + e.(judged).ID },
	})
	def.MaxBatch = 25
	return def
}

// bed is a database, a broker and a log of clicks that keeps the chain as a relay does.
type bed struct {
	t       *testing.T
	db      *pgtest.DB
	store   *eventstore.Store
	broker  *kafka.Embedded
	client  *kgo.Client
	rand    *rand.Rand
	seq     int64
	last    map[int32]int64
	log     map[int32][]events.Recorded // by partition
	metrics *prometheus.Registry
}

var epoch = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func newBed(t *testing.T) *bed {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	b := &bed{
		t: t, rand: rand.New(rand.NewPCG(seed, 0)), last: map[int32]int64{}, log: map[int32][]events.Recorded{},
		metrics: prometheus.NewRegistry(),
	}
	b.db = pgtest.New(t, eventstore.Migrations(), operator.Migrations(), Migrations())
	b.store = eventstore.New(b.db.Pool, eventstore.Options{Service: "tests", Registry: events.NewRegistry(clicked{}, judged{})})
	b.broker = kafkatest.New(t, clicks)
	var err error
	b.client, err = kgo.NewClient(kgo.SeedBrokers(b.broker.Brokers()...), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.client.Close)
	return b
}

// click is the next event of a partition, with the time at which it was recorded and its event time.
func (b *bed) click(partition int32, key string, recorded, at time.Time) events.Recorded {
	b.seq++
	c := clicked{ID: uuid.NewString(), Key: key, At: at}
	data, err := json.Marshal(c)
	if err != nil {
		b.t.Fatal(err)
	}
	r := events.Recorded{
		Meta: events.Meta{ID: c.ID, Time: recorded}, Type: c.EventType(), Source: clicks.Source(), Subject: "click-" + c.ID,
		Key: key, Sequence: b.seq, Previous: b.last[partition], HasPrevious: true, RecordedAt: recorded, Data: data, Event: c,
	}
	b.last[partition] = b.seq
	b.log[partition] = append(b.log[partition], r)
	return r
}

// history publishes n random clicks, one every 200 ms: most of them a little out of order, some late, some from the
// future.
func (b *bed) history(n int) {
	b.t.Helper()
	for range n {
		partition := int32(b.rand.IntN(int(clicks.Partitions)))
		recorded := epoch.Add(time.Duration(b.seq) * 200 * time.Millisecond)
		at := recorded.Add(-time.Duration(b.rand.IntN(8000)) * time.Millisecond)
		switch b.rand.IntN(15) {
		case 0:
			at = recorded.Add(-time.Duration(b.rand.IntN(40)) * time.Second)
		case 1:
			at = recorded.Add(time.Hour)
		}
		b.publish(partition, b.click(partition, fmt.Sprintf("%d-%d", partition, b.rand.IntN(4)), recorded, at))
	}
}

func (b *bed) publish(partition int32, r events.Recorded) {
	b.t.Helper()
	out := &kgo.Record{Topic: clicks.Name, Partition: partition, Value: r.Data}
	if r.Key != "" {
		out.Key = []byte(r.Key)
	}
	for _, h := range events.Headers(r) {
		out.Headers = append(out.Headers, kgo.RecordHeader{Key: h.Key, Value: []byte(h.Value)})
	}
	b.client.Produce(context.Background(), out, func(_ *kgo.Record, err error) {
		if err != nil {
			b.t.Errorf("publish: %v", err)
		}
	})
}

// ticks says on every partition that nothing is unsent up to at.
func (b *bed) ticks(at time.Time) {
	b.t.Helper()
	for p := range clicks.Partitions {
		b.publish(p, events.Tick(clicks, p, at))
	}
}

// want is what an uninterrupted run that remembers everything would say, worked out anew from the log.
func (b *bed) want() map[string]string {
	want := map[string]string{}
	for _, log := range b.log {
		var highest time.Time
		var seen []clicked
		for _, r := range log {
			c := r.Event.(clicked)
			if c.At.Sub(r.RecordedAt) > defaultSkew {
				want[c.ID] = "late"
				continue
			}
			want[c.ID] = ""
			for _, s := range seen {
				if want[c.ID] == "" && s.Key == c.Key && near(s.At, c.At) {
					want[c.ID] = s.ID
				}
			}
			if c.At.Before(highest.Add(-disorder)) {
				want[c.ID] = "late"
			}
			seen = append(seen, c)
			if c.At.After(highest) {
				highest = c.At
			}
		}
	}
	return want
}

func (b *bed) count(sql string, args ...any) int {
	b.t.Helper()
	var n int
	if err := b.db.Pool.QueryRow(context.Background(), sql, args...).Scan(&n); err != nil {
		b.t.Fatalf("%s: %v", sql, err)
	}
	return n
}

func (b *bed) verdicts() int { return b.count("select count(*) from events") }

// await polls until ok says that it is so.
func (b *bed) await(what string, ok func() bool) {
	b.t.Helper()
	b.awaitFor(patience, what, ok)
}

func (b *bed) awaitFor(most time.Duration, what string, ok func() bool) {
	b.t.Helper()
	deadline := time.NewTimer(most)
	defer deadline.Stop()
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	for !ok() {
		select {
		case <-look.C:
		case <-deadline.C:
			b.t.Fatalf("waited in vain for: %s", what)
		}
	}
}

// check waits for a verdict on every click and demands those of the uninterrupted run, one each.
func (b *bed) check() {
	b.t.Helper()
	want := b.want()
	b.await(strconv.Itoa(len(want))+" verdicts", func() bool { return b.verdicts() >= len(want) })
	rows, err := b.db.Pool.Query(context.Background(), "select data ->> 'id', data ->> 'verdict' from events")
	if err != nil {
		b.t.Fatal(err)
	}
	defer rows.Close()
	got := map[string]string{}
	for rows.Next() {
		var id, verdict string
		if err := rows.Scan(&id, &verdict); err != nil {
			b.t.Fatal(err)
		}
		if _, twice := got[id]; twice {
			b.t.Errorf("two verdicts on %s", id)
		}
		got[id] = verdict
	}
	kinds := map[string]int{}
	for id, verdict := range want {
		if said, ok := got[id]; !ok || said != verdict {
			b.t.Errorf("the verdict on %s is %q (%v), want %q", id, said, ok, verdict)
		}
		if len(verdict) > 4 {
			verdict = "repeat"
		}
		kinds[verdict]++
	}
	if len(got) != len(want) || kinds["repeat"] == 0 || kinds["late"] == 0 || kinds[""] == 0 {
		b.t.Errorf("%d verdicts on %d clicks: %v", len(got), len(want), kinds)
	}
}

// run starts an operator; stop ends it and waits. It is stopped when the test ends at the latest.
func (b *bed) run(def operator.Definition, member string) (stop func()) {
	o := operator.New(def, operator.Options{Store: b.store, Kafka: b.broker.Config("tests"), Member: member, Metrics: b.metrics})
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
	b.t.Cleanup(stop)
	return stop
}

// metric reads a gauge, a counter or the sum of a histogram.
func (b *bed) metric(name string) float64 {
	b.t.Helper()
	families, err := b.metrics.Gather()
	if err != nil {
		b.t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == name {
			m := f.GetMetric()[0]
			return m.GetGauge().GetValue() + m.GetCounter().GetValue() + m.GetHistogram().GetSampleSum()
		}
	}
	b.t.Fatalf("there is no metric %s", name)
	return 0
}
