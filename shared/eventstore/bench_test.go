package eventstore_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/feira-shop/feira/shared/eventstore"
	"github.com/feira-shop/feira/shared/pg"
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
	postmaster := postmasterOf(b, pool)

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
	measure(b, postmaster, grouped, 200) // warm up
	measure(b, postmaster, single, 200)
	var on, off []sample
	b.ReportAllocs()
	for b.Loop() {
		on = append(on, measure(b, postmaster, grouped, benchRound))
		off = append(off, measure(b, postmaster, single, benchRound))
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

func measure(b *testing.B, postmaster int, appendOne func(context.Context, eventstore.Append) error, n int) sample {
	b.Helper()
	todo := make([]eventstore.Append, n)
	for i := range todo {
		todo[i] = counted(b, fmt.Sprintf("counter-%08d", benchStream.Add(1)), 0)
		todo[i].Events[0] = encode(b, Counted{N: 1, Note: strings.Repeat("x", 300)})
	}
	cpuServer, cpuClient, start := processTreeCPU(b, postmaster), ownCPU(b), time.Now()
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
	wall, client := time.Since(start), ownCPU(b)-cpuClient
	server := processTreeCPU(b, postmaster) - cpuServer
	return sample{
		cpu:  float64((client + server).Microseconds()) / float64(n),
		here: float64(client.Microseconds()) / float64(n),
		rate: float64(n) / wall.Seconds(),
	}
}

func ownCPU(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	must(b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// postmasterOf is the process id of the server, as the parent of a backend.
func postmasterOf(b *testing.B, pool *pgxpool.Pool) int {
	b.Helper()
	stat := processStat(b, one[int](b, pool, "select pg_backend_pid()"))
	return stat.parent
}

type procStat struct {
	parent int
	cpu    time.Duration // of the process and of its children that have ended
}

// processStat reads /proc/<pid>/stat; its clock ticks are 10 ms on every Linux that Go runs on.
func processStat(b *testing.B, pid int) procStat {
	b.Helper()
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return procStat{parent: -1} // it has ended
	}
	fields := strings.Fields(string(raw[strings.LastIndexByte(string(raw), ')')+1:])) // from the third field on
	number := func(field int) int {
		n, err := strconv.Atoi(fields[field-3])
		must(b, err)
		return n
	}
	const tick = 10 * time.Millisecond
	return procStat{parent: number(4), cpu: time.Duration(number(14)+number(15)+number(16)+number(17)) * tick}
}

// processTreeCPU is the CPU time of a process and its direct children.
func processTreeCPU(b *testing.B, pid int) time.Duration {
	b.Helper()
	total := processStat(b, pid).cpu
	dirs, err := filepath.Glob("/proc/[0-9]*")
	must(b, err)
	for _, dir := range dirs {
		child, err := strconv.Atoi(filepath.Base(dir))
		if err != nil {
			continue
		}
		if stat := processStat(b, child); stat.parent == pid {
			total += stat.cpu
		}
	}
	return total
}
