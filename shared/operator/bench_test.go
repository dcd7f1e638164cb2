package operator

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/eventstore"
	"github.com/feira-shop/feira/shared/pg/pgtest"
	"github.com/feira-shop/feira/shared/telemetry"
	"github.com/feira-shop/feira/shared/telemetry/telemetrytest"
)

const (
	stored       = 100_000 // records on the topic
	singles      = 4_000   // of them with one record per transaction: it is slow
	shelves      = 300
	wantPerSec   = 10_000
	wantCPURatio = 10
)

// shelf is the state of the benchmark's aggregate.
type shelf struct {
	Taken int `json:"taken"`
}

// reserving is the effect of inventory: the stream of a shelf is loaded, each record adds an event to it, and
// the state is written.
type reserving struct{ prefix string }

func (r reserving) Apply(ctx context.Context, tx *eventstore.Tx, b []Record) error {
	names := make([]string, 0, len(b))
	appends := map[string]*eventstore.Append{}
	states := map[string]*shelf{}
	for _, rec := range b {
		name := r.prefix + rec.Key
		if appends[name] == nil {
			appends[name] = &eventstore.Append{Stream: name, Shape: 1}
			names = append(names, name)
		}
	}
	streams, err := tx.Load(ctx, names)
	if err != nil {
		return err
	}
	for name, s := range streams {
		states[name] = &shelf{}
		appends[name].Expected = s.Version
		if s.Version > 0 {
			if err := json.Unmarshal(s.State, states[name]); err != nil {
				return err
			}
		}
	}
	for _, rec := range b {
		name := r.prefix + rec.Key
		states[name].Taken++
		m := events.Meta{ID: uuid.NewString(), Time: rec.Time, Correlation: rec.Correlation, Causation: rec.ID, Traceparent: rec.Traceparent}
		e, err := eventstore.Encode(m, happened{Key: rec.Key, N: states[name].Taken})
		if err != nil {
			return err
		}
		appends[name].Events = append(appends[name].Events, e)
	}
	for _, name := range names {
		if appends[name].State, err = json.Marshal(states[name]); err != nil {
			return err
		}
		tx.Append(*appends[name])
	}
	return nil
}

// BenchmarkOperator measures an operator on stored events: effects per second in batches, and the CPU of this
// process (broker included) and of Postgres per effect, in batches against one by one.
func BenchmarkOperator(b *testing.B) {
	w := newWorld(b, facts)
	w.fill(func(int) string { return "" })
	for round := range b.N {
		perSec, batched := w.measure(b, fmt.Sprintf("tests.batched%d", round), 0, stored)
		singly, single := w.measure(b, fmt.Sprintf("tests.single%d", round), 1, singles)
		b.ReportMetric(perSec, "effects/s")
		b.ReportMetric(singly, "effects/s-at-1")
		b.ReportMetric(batched, "cpu-µs/effect")
		b.ReportMetric(single, "cpu-µs/effect-at-1")
		b.ReportMetric(single/batched, "cpu-ratio")
		if perSec < wantPerSec || single/batched < wantCPURatio {
			b.Errorf("%.0f effects/s and a CPU ratio of %.1f; wanted %d and %d", perSec, single/batched, wantPerSec, wantCPURatio)
		}
	}
}

// BenchmarkTraces measures what traces cost an operator in CPU per effect: without a tracer, and with one at several shares
// of records whose traces are kept. Each of those gives two spans, which are exported to a server that forgets them.
func BenchmarkTraces(b *testing.B) {
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) }))
	defer collector.Close()
	tracer := telemetrytest.Tracing(b, collector.URL).Service("tests")
	for _, c := range []struct {
		name   string
		tracer *telemetry.Tracer
		kept   int // of 100 records
	}{{"off", nil, 0}, {"kept=0%", tracer, 0}, {"kept=1%", tracer, 1}, {"kept=100%", tracer, 100}} {
		b.Run(c.name, func(b *testing.B) {
			w := newWorld(b, facts)
			w.store = eventstore.New(w.db.Pool, eventstore.Options{Service: "tests", Registry: events.NewRegistry(happened{}), Tracer: c.tracer})
			w.fill(func(n int) string {
				switch {
				case c.tracer == nil:
					return ""
				case n%100 < c.kept:
					return sent
				}
				return sentDark
			})
			for round := range b.N {
				perSec, cpu := w.measure(b, fmt.Sprintf("tests.traced%d", round), 0, stored)
				b.ReportMetric(perSec, "effects/s")
				b.ReportMetric(cpu, "cpu-µs/effect")
			}
		})
	}
}

// fill fills the topic; traceparent gives that of each record.
func (w *world) fill(traceparent func(n int) string) {
	for from := 0; from < stored; from += 5000 {
		records := make([]*kgo.Record, 5000)
		for i := range records {
			key := (from + i*7) % shelves
			records[i] = w.fact(facts, int32(key)%facts.Partitions, "shelf-"+strconv.Itoa(key))
			if tp := traceparent(from + i); tp != "" {
				records[i] = with(records[i], events.HeaderTraceparent, tp)
			}
		}
		w.publish(records...)
	}
}

// measure runs an operator until n effects are committed; it gives effects per second and CPU-µs per effect.
func (w *world) measure(b *testing.B, name string, maxBatch, n int) (perSecond, cpu float64) {
	b.Helper()
	def := w.definition(reserving{prefix: name + "-"}, facts)
	def.Name, def.MaxBatch = name, maxBatch
	o := w.operator(def, "m1")
	o.timing = defaultTiming
	before, begun := w.cpu(b), time.Now()
	stop := w.start(o)
	done := 0.0
	w.await("effects", func() bool {
		time.Sleep(20 * time.Millisecond) // looking costs CPU
		done = value(b, o.metrics.processed)
		return done >= float64(n)
	})
	took, used := time.Since(begun), w.cpu(b)-before
	stop()
	if got := w.count("select coalesce(sum(version), 0) from streams where stream like $1", name+"-%"); got < n {
		b.Fatalf("%d events, want at least %d", got, n)
	}
	return done / took.Seconds(), float64(used.Microseconds()) / done
}

// cpu is what this process and the database server have used so far.
func (w *world) cpu(b *testing.B) time.Duration {
	b.Helper()
	own, server := pgtest.CPU(b, w.db.Pool)
	return own + server
}
