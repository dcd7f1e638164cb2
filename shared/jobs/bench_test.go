package jobs

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/feira-shop/feira/shared/decider"
	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/pg/pgtest"
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
	cpu := func() time.Duration {
		own, server := pgtest.CPU(b, bed.db.Pool)
		return own + server
	}

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
