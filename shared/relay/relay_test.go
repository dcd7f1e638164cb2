package relay

import (
	"context"
	"encoding/base64"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/eventstore"
	"github.com/feira-shop/feira/shared/faulttest"
	"github.com/feira-shop/feira/shared/kafka"
)

func TestPublishesTheEventsOfItsTopicInOrder(t *testing.T) {
	t.Parallel()
	e := newEnv(t, events.Orders)
	e.append(placed, keys(300)...)
	e.append(captured, keys(10)...)
	e.append(private, keys(10)...)
	e.append(placed, keys(1200)...)
	r, _ := e.start()
	e.drained()
	if n := e.check(); n != 0 || e.ends() != 1500 {
		t.Errorf("%d records, %d of them repeated; want 1500 and 0", e.ends(), n)
	}
	if n := value(r.metrics.published); n != 1500 {
		t.Errorf("counted %v published", n)
	}
	first := e.log(kafka.Partition("key-0", 1, 6))[0]
	if first.Subject == "" || first.Correlation != "c-1" || first.Source != "/feira/orders" || first.Key != "key-0" ||
		string(first.Data) != `{"key" : "key-0"}` || first.RecordedAt.IsZero() || !first.Time.Equal(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)) {
		t.Errorf("got %+v", first)
	}
}

func TestCompactedTopicsHaveNoChain(t *testing.T) {
	t.Parallel()
	e := newEnv(t, events.Catalog)
	e.append("shop.feira.product.changed.v1", keys(20)...)
	e.start()
	e.drained()
	for n := range e.topic.Partitions {
		for _, r := range e.log(n) {
			if r.HasPrevious {
				t.Fatalf("position %d has ce_previous", r.Sequence)
			}
		}
	}
	if e.ends() != 20 {
		t.Errorf("%d records, want 20", e.ends())
	}
}

// The store wakes the relay: nothing waits for its poll.
func TestCommitsWakeTheRelay(t *testing.T) {
	t.Parallel()
	e := newEnv(t, events.Orders)
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	store := eventstore.New(e.db.Pool, eventstore.Options{Service: "orders", Registry: events.NewRegistry()})
	wg.Go(func() {
		if err := store.Run(ctx); err != nil {
			t.Errorf("store: %v", err)
		}
	})
	t.Cleanup(func() { cancel(); wg.Wait() })
	r, _ := e.start(func(r *Relay) { r.opts.Store, r.timing.poll = store, 2500*time.Millisecond })
	e.until("it leads", func() bool { return value(r.metrics.rounds) > 0 })
	began := time.Now()
	for i := range 10 {
		event := eventstore.Event{ID: strconv.Itoa(i), Type: placed, Key: "k", Data: []byte("{}"), Meta: []byte(`{"id":"` + strconv.Itoa(i) + `","time":"2026-01-01T00:00:00Z"}`)}
		_, err := store.Append(ctx, eventstore.Append{Stream: "order-" + strconv.Itoa(i), State: []byte("{}"), Events: []eventstore.Event{event}})
		if err != nil {
			t.Fatal(err)
		}
		e.drained()
	}
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("ten events took %s: they waited for the poll", took)
	}
}

func TestFaultCursorStopsBeforeTheFailedEvent(t *testing.T) {
	t.Parallel()
	faulttest.Begin(t, faulttest.Plan{Name: "A failed event",
		Does: "refuses the fourth of ten events: the cursor stays at the third, and the fourth goes before anything later of its key"})
	e := newEnv(t, events.Orders)
	// The fourth event's key is alone in its partition, and comes twice more.
	partition := kafka.Partition("failing", 1, 6)
	other := ""
	for i := 0; other == ""; i++ {
		if k := strconv.Itoa(i); kafka.Partition(k, 1, 6) != partition {
			other = k
		}
	}
	fault := e.broker.Cluster().Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Partitions: []int32{partition}, Err: kerr.MessageTooLarge, Count: -1})
	e.append(placed, other, other, other, "failing", other, "failing", other, "failing", other, other)
	r, _ := e.start()
	ctx, cancel := context.WithTimeout(t.Context(), patience/3)
	defer cancel()
	if err := fault.Wait(ctx, 3); err != nil {
		t.Fatalf("the failed event is not sent again: %v; the cursor is at %d", err, e.cursor())
	}
	if got := e.cursor(); got != 3 {
		t.Fatalf("the cursor is at %d, want 3", got)
	}
	if n := len(e.log(partition)); n != 0 {
		t.Errorf("%d records of the failing key were written", n)
	}
	e.until("the metrics tell of it", func() bool {
		return value(r.metrics.outbox) == 7 && value(r.metrics.oldest) > 0 && value(r.metrics.errors) > 2
	})
	fault.Remove()
	e.drained()
	e.check()
	e.until("the metrics tell of it", func() bool {
		return value(r.metrics.outbox) == 0 && value(r.metrics.oldest) == 0
	})
}

func TestFaultCommitDuringARound(t *testing.T) {
	t.Parallel()
	faulttest.Begin(t, faulttest.Plan{Name: "Commit during a round",
		Does: "commits events between the relay's read and its cursor: they are sent"})
	e := newEnv(t, events.Orders)
	e.append(placed, keys(5)...)
	e.onProduce(1, func() {
		if err := e.tryAppend(placed, keys(5)...); err != nil { // after the read, before the cursor moves
			t.Error(err)
		}
	})
	e.start()
	e.until("all are sent", func() bool { return e.cursor() == 10 })
	e.check()
}

// Rolled-back appends leave holes in the positions, the first of them right after the cursor.
func TestFaultHoles(t *testing.T) {
	t.Parallel()
	faulttest.Begin(t, faulttest.Plan{Name: "Holes",
		Does: "rolls back 100 appends beside a forgotten transaction: the relay neither stands still at a hole nor passes an event"})
	e := newEnv(t, events.Orders)
	e.start()
	e.append(placed, keys(2)...)
	e.drained()
	e.forgotten(t)
	for range 100 {
		tx, err := e.db.Pool.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tx.Exec(t.Context(), insertSQL, placed, keys(3)); err != nil {
			t.Fatal(err)
		}
		if err := tx.Rollback(t.Context()); err != nil {
			t.Fatal(err)
		}
		e.append(placed, keys(2)...)
	}
	e.drained()
	if n := e.check(); n != 0 || e.ends() != 202 {
		t.Errorf("%d records, %d of them repeated; expected 202 and none", e.ends(), n)
	}
}

func TestLargeEventsAreReadInPortions(t *testing.T) {
	t.Parallel()
	e := newEnv(t, events.Orders)
	random := rand.NewChaCha8([32]byte{})
	texts := make([]string, 50) // 10 MB that do not compress
	for i := range texts {
		b := make([]byte, 150_000)
		_, _ = random.Read(b)
		texts[i] = base64.StdEncoding.EncodeToString(b)
	}
	e.exec(`insert into events (stream, version, type, key, data, meta)
select 'order-' || n, 1, $1, n::text, json_build_object('text', t), json_build_object('id', gen_random_uuid(), 'time', '2026-01-02T03:04:05Z')
from unnest($2::text[]) with ordinality u(t, n) order by n`, placed, texts)
	l := e.elect()
	b, err := l.read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if b.rows == 0 || b.rows == len(texts) || !b.full {
		t.Errorf("read %d of %d at once, more: %t", b.rows, len(texts), b.full)
	}
	if err := l.close(context.Background()); err != nil {
		t.Error(err)
	}
	e.start()
	e.drained()
	e.check()
}
