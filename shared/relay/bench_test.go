package relay

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/eventstore"
	"github.com/feira-shop/feira/shared/kafka"
	"github.com/feira-shop/feira/shared/pg/pgtest"
)

// BenchmarkDrain publishes 100,000 stored events of about 700 bytes to a broker in another process. cpu-µs/event is
// the relay's own CPU time; Postgres and the broker are processes of their own.
func BenchmarkDrain(b *testing.B) {
	const stored = 100_000
	for b.Loop() {
		b.StopTimer()
		brokers := benchBroker(b)
		e := &env{t: b, db: pgtest.New(b, eventstore.Migrations(), Migrations()), topic: events.Orders}
		e.exec(`insert into events (stream, version, type, key, data, meta)
select 'order-' || n, 1, $1, 'key-' || n % 5000, json_build_object('customer', 'c-' || n, 'text', repeat('x', 600)),
       json_build_object('id', gen_random_uuid(), 'time', '2026-01-02T03:04:05.123456Z', 'correlation', gen_random_uuid(), 'causation', gen_random_uuid())
from generate_series(1, $2::int) n`, placed, stored)
		e.exec("analyze events")
		cfg := kafka.Config{Brokers: brokers}
		if err := kafka.EnsureTopics(b.Context(), cfg, []events.Topic{e.topic}, kafka.EnsureOptions{}); err != nil {
			b.Fatal(err)
		}
		l, err := New(Options{DSN: e.db.DSN, Kafka: cfg, Topic: e.topic}).elect(b.Context())
		if err == nil {
			err = l.prepare(b.Context())
		}
		if err != nil {
			b.Fatal(err)
		}
		cpu, began := pgtest.OwnCPU(b), time.Now()
		b.StartTimer()
		for more := true; more; {
			if more, err = l.round(context.Background()); err != nil {
				b.Fatal(err)
			}
		}
		b.StopTimer()
		took, cpu := time.Since(began), pgtest.OwnCPU(b)-cpu
		b.ReportMetric(stored/took.Seconds(), "events/s")
		b.ReportMetric(float64(cpu.Microseconds())/stored, "cpu-µs/event")
		if l.position != stored {
			b.Fatalf("published up to %d", l.position)
		}
		if err := l.close(context.Background()); err != nil {
			b.Error(err)
		}
		b.StartTimer()
	}
}

func benchBroker(b *testing.B) []string {
	b.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), helperDSN+"=broker")
	stdin, err := cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = stdin.Close()
		_ = cmd.Wait()
	})
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		b.Fatal(err)
	}
	return []string{strings.TrimSpace(line)}
}
