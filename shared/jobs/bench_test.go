package jobs

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/feira-shop/feira/shared/decider"
	"github.com/feira-shop/feira/shared/events"
)

// benchJobs is how many jobs one round does.
const benchJobs = 2000

// BenchmarkOutcome measures what a job costs from its insert to its completion with one outcome event, side
// effect left out: CPU of this process and of all of Postgres, and jobs per second. Inserting is measured apart,
// by what the same commands cost while jobs are paused.
func BenchmarkOutcome(b *testing.B) {
	bed := newBed(b)
	must(b, Pause(b.Context(), bed.db.Pool))
	bed.start(Work(spec(receipt)))
	postmaster := parentOf(b, one[int](b, bed.db.Pool, "select pg_backend_pid()"))
	cpu := func() time.Duration { return ownCPU(b) + childrenCPU(b, postmaster) }

	var insert, outcome, wall time.Duration
	for round := 0; b.Loop(); round++ {
		before := cpu()
		bed.askMany(fmt.Sprintf("%d-", round), benchJobs)
		insert += cpu() - before

		before, begun := cpu(), time.Now()
		must(b, Resume(b.Context(), bed.db.Pool))
		bed.until("all jobs are done", "select not exists (select from river_job where state <> 'completed')")
		wall += time.Since(begun)
		outcome += cpu() - before
		must(b, Pause(b.Context(), bed.db.Pool))
		execSQL(b, bed.db.Pool, "delete from river_job")
	}
	jobs := float64(b.N * benchJobs)
	b.ReportMetric(float64(insert.Microseconds())/jobs, "cpu-µs/insert")
	b.ReportMetric(float64(outcome.Microseconds())/jobs, "cpu-µs/outcome")
	b.ReportMetric(jobs/wall.Seconds(), "jobs/s")
}

// askMany inserts jobs from 64 callers.
func (b *bed) askMany(prefix string, n int) {
	var callers sync.WaitGroup
	for c := range 64 {
		callers.Go(func() {
			for i := c; i < n; i += 64 {
				order := prefix + strconv.Itoa(i)
				if _, err := decider.Handle(context.Background(), b.store, charges(), "charge-"+order, ask{Order: order}, events.Meta{}); err != nil {
					b.t.Error(err)
				}
			}
		})
	}
	callers.Wait()
}

func ownCPU(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	must(b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// clockTick is the unit of /proc/<pid>/stat.
const clockTick = 10 * time.Millisecond

// stat is the parent and the CPU time of a process, with that of its children that ended.
func stat(pid string) (parent int, cpu time.Duration, ok bool) {
	data, err := os.ReadFile("/proc/" + pid + "/stat")
	if err != nil {
		return 0, 0, false
	}
	fields := strings.Fields(string(data)[strings.LastIndex(string(data), ")")+1:])
	parent, _ = strconv.Atoi(fields[1])
	var ticks int
	for _, f := range fields[11:15] {
		n, _ := strconv.Atoi(f)
		ticks += n
	}
	return parent, time.Duration(ticks) * clockTick, true
}

func parentOf(b *testing.B, pid int) int {
	b.Helper()
	parent, _, ok := stat(strconv.Itoa(pid))
	if !ok {
		b.Fatal("no /proc")
	}
	return parent
}

func childrenCPU(b *testing.B, postmaster int) time.Duration {
	b.Helper()
	entries, err := os.ReadDir("/proc")
	must(b, err)
	_, sum, _ := stat(strconv.Itoa(postmaster))
	for _, e := range entries {
		if parent, cpu, ok := stat(e.Name()); ok && parent == postmaster {
			sum += cpu
		}
	}
	return sum
}
