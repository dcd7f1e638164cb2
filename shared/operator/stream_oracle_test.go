package operator_test

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/eventstore"
	"github.com/feira-shop/feira/shared/faulttest"
	"github.com/feira-shop/feira/shared/kafka"
	"github.com/feira-shop/feira/shared/kafka/kafkatest"
	"github.com/feira-shop/feira/shared/operator"
	"github.com/feira-shop/feira/shared/pg/pgtest"
	"github.com/feira-shop/feira/shared/stream"
)

// Bounds of the stream of this test.
const (
	lag      = 30 * time.Second // how far events are shuffled
	clocks   = 30 * time.Second // how far the clocks of those that write are apart
	skew     = clocks           // what may be in the future
	size     = 2 * time.Minute
	slide    = time.Minute
	lateness = 30 * time.Second
	rate     = 140 // events a second
)

var (
	sales = events.Topic{Name: "sales", Owner: "sales", Partitions: 4, Retention: events.Forever, Ticks: true}
	noon  = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
)

// sold is the only event: so much of something.
type sold struct {
	Item   string    `json:"item"`
	Amount int       `json:"amount"`
	At     time.Time `json:"at"`
}

func (sold) EventType() string  { return "shop.feira.item.sold.v1" }
func (s sold) EventKey() string { return s.Item }

// sum is what a window holds.
type sum struct {
	Sales  int `json:"n"`
	Amount int `json:"amount"`
}

func (s sum) add(o sum) sum { return sum{s.Sales + o.Sales, s.Amount + o.Amount} }

// summed is what is said of a window.
type summed struct {
	Item     string    `json:"item"`
	Start    time.Time `json:"start"`
	Sum      sum       `json:"sum"`
	Revision int       `json:"revision"`
}

func (summed) EventType() string  { return "shop.feira.item.summed.v1" }
func (s summed) EventKey() string { return s.Item }

// cell is a window of an item.
type cell struct {
	start time.Time
	item  string
}

func (c cell) stream() string { return "sum-" + c.start.UTC().Format(time.RFC3339) + "-" + c.item }

func sums() operator.Definition {
	return stream.From(sales, sold{}).
		At(func(r events.Recorded) time.Time { return r.Event.(sold).At }).
		Disorder(lag+clocks).Skew(skew).
		Window(stream.Sliding(size, slide).Lateness(lateness)).
		Aggregate("tests.sums", stream.Aggregation[sum]{
			Lift:  func(r events.Recorded, _ string) sum { return sum{1, r.Event.(sold).Amount} },
			Merge: sum.add,
			Event: func(r stream.Result[sum]) events.Event { return summed{r.Key, r.Window.Start, r.Value, r.Revision} },
			Stream: func(r stream.Result[sum]) string {
				return cell{r.Window.Start, r.Key}.stream()
			},
		})
}

// A stream as bad as streams get, and an operator that is killed again and again in the middle of it: what it says in the
// end is what a naive computation says that sorts and adds, each result once.
func TestFaultStreamOracle(t *testing.T) {
	t.Parallel()
	run := faulttest.Begin(t, faulttest.Plan{
		Number: 9, Name: "Stream oracle",
		Does: "shuffled events on four partitions, one of them idle, clocks 30 s apart, some events late and some from the future, " +
			"while the operator is killed at the points of its batches and closings: the windows are those of a computation that sorts and adds",
	})
	n, kills := run.Times(40_000, 1_000_000), run.Times(5, 20)
	w := newStreamWorld(t, run.Dice())
	began := time.Now()
	w.publish(n)
	run.Found("publishing", time.Since(began).Round(time.Second).String())
	began = time.Now()
	dice := run.Dice()
	for i := range kills {
		points := operator.Points()
		most := n / 500 / kills / 2 // batches, so that there is something left for the last run
		if strings.Contains(points[i%len(points)], "closing") {
			most = 3
		}
		w.killed(points[i%len(points)], 1+dice.Int64N(int64(max(2, most))))
		w.accounted()
	}
	w.finish()
	run.Found("applying, with the kills", time.Since(began).Round(time.Second).String())
	w.agrees()
	run.Count("events", n)
	run.Count("kills", kills)
	run.Count("late", w.want.late)
	run.Count("quarantined", w.want.quarantined)
	run.Count("results", len(w.want.sums))
}

// streamWorld is a log and what must come of it.
type streamWorld struct {
	t       *testing.T
	dice    *rand.Rand
	db      *pgtest.DB
	store   *eventstore.Store
	broker  *kafka.Embedded
	want    wanted
	isEvent map[int32][]bool // by offset; the others are ticks
}

func newStreamWorld(t *testing.T, dice *rand.Rand) *streamWorld {
	t.Helper()
	w := &streamWorld{t: t, dice: dice, isEvent: map[int32][]bool{}}
	w.db = pgtest.New(t, eventstore.Migrations(), operator.Migrations(), stream.Migrations())
	w.store = eventstore.New(w.db.Pool, eventstore.Options{Service: "tests", Registry: events.NewRegistry(sold{}, summed{})})
	w.broker = kafkatest.New(t, sales)
	return w
}

// publish writes the whole log. The last partition gets nothing but ticks.
func (w *streamWorld) publish(n int) {
	w.t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(w.broker.Brokers()...), kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProducerBatchCompression(kgo.SnappyCompression()))
	if err != nil {
		w.t.Fatal(err)
	}
	defer client.Close()
	send := func(p int32, r events.Recorded) {
		w.isEvent[p] = append(w.isEvent[p], r.Type != events.TickType)
		client.Produce(context.Background(), recordOf(p, r), func(_ *kgo.Record, err error) {
			if err != nil {
				w.t.Errorf("publish: %v", err)
			}
		})
	}
	idle := sales.Partitions - 1
	last := map[int32]int64{}
	o := newNaive()
	for i := range n {
		now := noon.Add(time.Duration(i) * time.Second / rate)
		p := w.dice.Int32N(idle)
		s := sold{Item: "item-" + strconv.Itoa(w.dice.IntN(150)), Amount: 1 + w.dice.IntN(1000), At: w.happened(now, p)}
		send(p, w.recorded(s, now, int64(i+1), last[p]))
		last[p] = int64(i + 1)
		o.take(p, s, now)
		if i%(30*rate) == 0 { // as the relay does
			send(idle, events.Tick(sales, idle, now))
		}
	}
	end := noon.Add(time.Duration(n)*time.Second/rate + time.Hour)
	for p := range sales.Partitions {
		send(p, events.Tick(sales, p, end))
	}
	if err := client.Flush(context.Background()); err != nil {
		w.t.Fatal(err)
	}
	w.want = o.result()
}

// happened is the event time of what is recorded now: shuffled, by a clock that is wrong, in two of a hundred cases long
// ago, in one of two hundred yet to come.
func (w *streamWorld) happened(now time.Time, p int32) time.Time {
	wrong := clocks * time.Duration(p-1) / 2 // from 15 s behind to 15 s ahead
	at := now.Add(wrong - time.Duration(w.dice.Int64N(int64(lag))))
	switch chance := w.dice.IntN(1000); {
	case chance < 20:
		return at.Add(-2*time.Minute - time.Duration(w.dice.Int64N(int64(10*time.Minute))))
	case chance < 25:
		return now.Add(skew + 1 + time.Duration(w.dice.Int64N(int64(24*time.Hour))))
	}
	return at
}

func (w *streamWorld) recorded(s sold, now time.Time, sequence, previous int64) events.Recorded {
	data, err := json.Marshal(s)
	if err != nil {
		w.t.Fatal(err)
	}
	return events.Recorded{
		Meta: events.Meta{ID: uuid.NewString(), Time: now}, Type: s.EventType(), Source: sales.Source(), Subject: "sale",
		Key: s.Item, Sequence: sequence, Previous: previous, HasPrevious: true, RecordedAt: now, Data: data,
	}
}

func recordOf(p int32, r events.Recorded) *kgo.Record {
	out := &kgo.Record{Topic: sales.Name, Partition: p, Value: r.Data}
	if r.Key != "" {
		out.Key = []byte(r.Key)
	}
	for _, h := range events.Headers(r) {
		out.Headers = append(out.Headers, kgo.RecordHeader{Key: h.Key, Value: []byte(h.Value)})
	}
	return out
}

// killed runs the operator until it passes a point for the nth time.
func (w *streamWorld) killed(point string, nth int64) {
	w.t.Helper()
	o := w.operator()
	killed := o.KillAt(point, nth)
	ctx, cancel := context.WithTimeout(w.t.Context(), 2*time.Minute)
	defer cancel()
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = o.Run(ctx)
	}()
	<-done
	select {
	case <-killed:
	default:
		w.t.Fatalf("the operator did not pass %s %d times", point, nth)
	}
}

func (w *streamWorld) operator() *operator.Operator {
	return operator.New(sums(), operator.Options{Store: w.store, Kafka: w.broker.Config("tests"), Member: "m1"})
}

// accounted demands that exactly the events below the checkpoints are in the ledger.
func (w *streamWorld) accounted() {
	w.t.Helper()
	rows, err := w.db.Pool.Query(w.t.Context(), `select k.partition, k.next_offset, coalesce(m.received, 0)
		from checkpoints k left join stream_watermarks m using (operator, topic, partition)`)
	if err != nil {
		w.t.Fatal(err)
	}
	var partition int32
	var next int64
	var received int
	if _, err := pgx.ForEachRow(rows, []any{&partition, &next, &received}, func() error {
		want := 0
		for _, is := range w.isEvent[partition][:max(0, next)] {
			if is {
				want++
			}
		}
		if received != want {
			w.t.Errorf("partition %d: %d events are in the ledger, and %d below its checkpoint", partition, received, want)
		}
		return nil
	}); err != nil {
		w.t.Fatal(err)
	}
}

// finish runs the operator until all is applied and closed.
func (w *streamWorld) finish() {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), 5*time.Minute)
	defer cancel()
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = w.operator().Run(ctx)
	}()
	look := time.NewTicker(50 * time.Millisecond)
	defer look.Stop()
	for ctx.Err() == nil && !w.over() {
		<-look.C
	}
	cancel()
	<-done
	if !w.over() {
		w.t.Fatal("the operator did not come to the end")
	}
}

// over says whether everything is applied and no partial value waits.
func (w *streamWorld) over() bool {
	total := 0
	for _, of := range w.isEvent {
		total += len(of)
	}
	var over bool
	if err := w.db.Pool.QueryRow(w.t.Context(), `select coalesce(sum(next_offset), 0) = $1 and not exists (select from stream_partials)
		from checkpoints`, total).Scan(&over); err != nil {
		w.t.Fatal(err)
	}
	return over
}
