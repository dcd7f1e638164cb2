package archive_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/eventstore"
	"github.com/feira-shop/feira/shared/pg/pgtest"
	"github.com/feira-shop/feira/shared/relay"
)

// sample is how often something is done to measure it.
func (b *big) sample() int { return int(min(b.size/12, 10_000)) }

// measure says what an append, an event through the relay and a history cost, by processor time of this process and the
// server.
func (b *big) measure(when string) map[string]float64 {
	b.Helper()
	cost := map[string]float64{}
	n := b.sample()
	for range samples { // the cheapest counts, as others run meanwhile
		for what, do := range map[string]func(n int) int{"append": b.append, "relay": b.relay, "load": b.loads, "history": b.histories} {
			b.rest()
			own, server := pgtest.CPU(b, b.pool)
			did := do(n)
			ownAfter, serverAfter := pgtest.CPU(b, b.pool)
			used := float64((ownAfter - own + serverAfter - server).Microseconds()) / float64(did)
			if before, ok := cost[what]; !ok || used < before {
				cost[what] = used
			}
		}
	}
	b.run.Found(fmt.Sprintf("%s, %d events in %d parts", when, one[int64](b, "select last_value from events_position_seq"), one[int](b, "select count(*) from es_parts()")),
		fmt.Sprintf("append %.0f, relay %.1f, load %.0f (%.1f pages read), history %.0f CPU-µs",
			cost["append"], cost["relay"], cost["load"], b.pagesRead(), cost["history"]))
	return cost
}

// rest waits until the server has done what it does by itself after so many inserts, which would count as what is measured:
// half a second of an autovacuum beside ten thousand loads is 50 µs for each.
func (b *big) rest() {
	b.Helper()
	const busy = "select (select count(*) from pg_stat_progress_vacuum) + (select count(*) from pg_stat_progress_analyze)"
	for deadline := time.Now().Add(patience); one[int](b, busy) > 0 && time.Now().Before(deadline); {
		time.Sleep(50 * time.Millisecond)
	}
}

// pagesRead is how many pages a load takes from outside of the server's own memory, on average.
func (b *big) pagesRead() float64 {
	b.Helper()
	const loads = 500
	pages, made := 0, b.streams.Load()
	for range loads {
		var plans []struct {
			Plan struct {
				Read int `json:"Shared Read Blocks"`
			}
		}
		stream := fmt.Sprintf("points-%d", rand.Int64N(made))
		must(b, b.pool.QueryRow(b.Context(), "explain (analyze, buffers, format json) select version, shape, state from streams where stream = $1", stream).Scan(&plans))
		pages += plans[0].Plan.Read
	}
	return float64(pages) / loads
}

// loads reads states of streams of all ages.
func (b *big) loads(n int) int {
	b.Helper()
	made := int(b.streams.Load())
	for i := range n {
		stream := fmt.Sprintf("points-%d", made*i/n)
		if s, err := b.store.Load(b.Context(), stream); err != nil || s.Version != 1 && s.Version != perStream {
			b.Fatalf("%s is at version %d: %v", stream, s.Version, err)
		}
	}
	return n
}

// histories reads those of streams of the first part, and, besides, one that has events in every part.
func (b *big) histories(n int) int {
	b.Helper()
	for i := range n {
		if got := b.history(fmt.Sprintf("points-%d", i%100)); got != perStream && got != 0 {
			b.Fatalf("the history of points-%d has %d events", i%100, got)
		}
	}
	b.history(fmt.Sprintf("long-%d", n%longs+1))
	return n
}

// history reads one and checks that it is whole; one that is archived has no event, and the error says so.
func (b *big) history(stream string) int {
	b.Helper()
	history, err := b.store.History(b.Context(), stream, eventstore.Until{})
	var gone *eventstore.ArchivedError
	if errors.As(err, &gone) && gone.Stream == stream {
		return 0
	}
	must(b, err)
	for i, r := range history {
		if r.Subject != stream || !strings.Contains(string(r.Data), fmt.Sprintf(`"points":%d}`, i+1)) {
			b.Fatalf("event %d of %s is %s of %s", i+1, stream, r.Data, r.Subject)
		}
	}
	return len(history)
}

// append has writers append single events.
func (b *big) append(n int) int {
	b.Helper()
	var left atomic.Int64
	left.Store(int64(n))
	var all sync.WaitGroup
	for range writers {
		all.Go(func() {
			for left.Add(-1) >= 0 {
				b.once()
			}
		})
	}
	all.Wait()
	return n
}

func (b *big) once() {
	id, stream := uuid.NewString(), fmt.Sprintf("points-%d", b.streams.Add(1)-1)
	data := fmt.Sprintf(`{"customer":"%s","order":"%s","points":1}`, stream, stream)
	meta := fmt.Sprintf(`{"id":"%s","time":"2026-01-02T03:04:05.123456Z","correlation":"%s"}`, id, stream)
	_, err := b.store.Append(context.Background(), eventstore.Append{
		Stream: stream, Shape: 1, State: []byte("1"),
		Events: []eventstore.Event{{ID: id, Type: earned, Key: stream, Data: []byte(data), Meta: []byte(meta)}},
	})
	if err != nil {
		b.Error(err)
	}
}

// relay has the relay publish the last n events: the broker keeps all of it in memory.
func (b *big) relay(n int) int {
	b.Helper()
	end := one[int64](b, "select max(position) from events")
	b.exec(`insert into relay_cursor (topic, position) values ($1, $2) on conflict (topic) do update set position = excluded.position`,
		events.Loyalty.Name, end-int64(n))
	stop := b.loop(relay.New(relay.Options{
		DSN: b.dsn, Kafka: b.broker.Config("relay"), Topic: events.Loyalty, Log: slog.New(slog.NewTextHandler(b.Output(), &slog.HandlerOptions{Level: slog.LevelWarn})),
	}).Run)
	for deadline := time.Now().Add(patience); one[int64](b, "select position from relay_cursor") < end; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			b.Fatal("the relay has not published what there is")
		}
	}
	stop()
	b.said += int64(n)
	var logged int64
	for _, p := range b.broker.Cluster().PartitionInfos(events.Loyalty.Name) {
		logged += p.HighWatermark
	}
	if logged != b.said {
		b.Errorf("the log has %d records of %d events", logged, b.said)
	}
	return n
}
