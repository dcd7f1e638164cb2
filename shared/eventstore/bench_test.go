package eventstore_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/feira-shop/feira/shared/eventstore"
	"github.com/feira-shop/feira/shared/pg"
	"github.com/feira-shop/feira/shared/pg/pgtest"
)

const (
	benchCallers = 16
	benchRound   = 3000 // appends per measured round
)

// BenchmarkAppend measures what one append of one event costs with and without group commit: 16 callers, fsync on,
// rounds in turn in one run. CPU is that of this process and of all of Postgres, from the operating system.
func BenchmarkAppend(b *testing.B) {
	dir, err := os.MkdirTemp("", "eventstore-bench-") // on a disk, and open to the user that Postgres runs as
	must(b, err)
	must(b, os.Chmod(dir, 0o755))
	b.Cleanup(func() { _ = os.RemoveAll(dir) })
	server, err := pg.Start(b.Context(), pg.Options{Dir: dir})
	must(b, err)
	b.Cleanup(func() { must(b, server.Stop()) })
	must(b, server.CreateDatabase(b.Context(), "bench"))
	dsn := server.DSN("bench")
	must(b, pg.Migrate(b.Context(), dsn, eventstore.Migrations()))
	pool := open(b, dsn, benchCallers)
	if fsync := one[string](b, pool, "show fsync"); fsync != "on" {
		b.Fatalf("fsync is %s", fsync)
	}
	s := start(b, pool)

	grouped := func(ctx context.Context, a eventstore.Append) error {
		_, err := s.Append(ctx, a)
		return err
	}
	single := func(ctx context.Context, a eventstore.Append) error {
		tx, err := s.Begin(ctx)
		if err != nil {
			return err
		}
		defer tx.Rollback()
		tx.Append(a)
		return tx.Commit(ctx, "es_commit")
	}
	measure(b, pool, grouped, 200) // warm up
	measure(b, pool, single, 200)
	var on, off []sample
	b.ReportAllocs()
	for b.Loop() {
		on = append(on, measure(b, pool, grouped, benchRound))
		off = append(off, measure(b, pool, single, benchRound))
	}
	ratio := median(off, cpu) / median(on, cpu)
	b.ReportMetric(median(on, cpu), "grouped-cpu-µs/append")
	b.ReportMetric(median(on, cpuHere), "grouped-client-cpu-µs/append")
	b.ReportMetric(median(off, cpu), "single-cpu-µs/append")
	b.ReportMetric(median(on, rate), "grouped-appends/s")
	b.ReportMetric(median(off, rate), "single-appends/s")
	b.ReportMetric(ratio, "cpu-ratio")
}

// sample is one round: CPU-µs per append, in all and of this process, and appends per second.
type sample struct{ cpu, here, rate float64 }

func cpu(s sample) float64     { return s.cpu }
func cpuHere(s sample) float64 { return s.here }
func rate(s sample) float64    { return s.rate }

func median(all []sample, of func(sample) float64) float64 {
	values := make([]float64, len(all))
	for i, s := range all {
		values[i] = of(s)
	}
	slices.Sort(values)
	return values[len(values)/2]
}

var benchStream atomic.Int64

func measure(b *testing.B, pool *pgxpool.Pool, appendOne func(context.Context, eventstore.Append) error, n int) sample {
	b.Helper()
	todo := make([]eventstore.Append, n)
	for i := range todo {
		todo[i] = counted(b, fmt.Sprintf("counter-%08d", benchStream.Add(1)), 0)
		todo[i].Events[0] = encode(b, Counted{N: 1, Note: strings.Repeat("x", 300)})
	}
	client, server := pgtest.CPU(b, pool)
	start := time.Now()
	var next atomic.Int64
	var callers sync.WaitGroup
	for range benchCallers {
		callers.Go(func() {
			for i := next.Add(1) - 1; i < int64(n); i = next.Add(1) - 1 {
				if err := appendOne(context.Background(), todo[i]); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	callers.Wait()
	wall := time.Since(start)
	clientAfter, serverAfter := pgtest.CPU(b, pool)
	client, server = clientAfter-client, serverAfter-server
	return sample{
		cpu:  float64((client + server).Microseconds()) / float64(n),
		here: float64(client.Microseconds()) / float64(n),
		rate: float64(n) / wall.Seconds(),
	}
}
