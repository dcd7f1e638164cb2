package jobs

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/eventstore"
	"github.com/feira-shop/feira/shared/pg"
)

// childDSN tells this test binary that it is the process to be killed, and where its database is.
const childDSN = "JOBS_TEST_CHILD_DSN"

// locksHeld counts the clients that hold their lock.
const locksHeld = `select count(*) from pg_locks l join pg_stat_activity a using (pid)
 where l.locktype = 'advisory' and l.granted and a.datname = current_database() and a.application_name = 'jobs-presence'`

// child does jobs until it is killed: it says what it began, and ends an attempt when a line comes in.
func child(dsn string) {
	ctx := context.Background()
	pool, err := pg.Open(ctx, dsn, pg.PoolOptions{Name: "child"})
	if err != nil {
		fmt.Println("error", err)
		return
	}
	store := eventstore.New(pool, eventstore.Options{Service: "charges", Registry: events.NewRegistry(asked{}, charged{})})
	go func() { _ = store.Run(ctx) }()
	lines := bufio.NewScanner(os.Stdin)
	_, err = Start(ctx, []Definition{Work(spec(func(ctx context.Context, a chargeJob) (any, error) {
		fmt.Println("began", a.Order)
		lines.Scan()
		return got{Order: a.Order, Receipt: "from the child"}, nil
	}))}, Options{Store: store, Member: "child"})
	if err != nil {
		fmt.Println("error", err)
		return
	}
	select {}
}

// startChild runs a process that has begun the one job there is.
func startChild(t *testing.T, dsn string) (cmd *exec.Cmd, finish func()) {
	t.Helper()
	cmd = exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childDSN+"="+dsn)
	in, err := cmd.StdinPipe()
	must(t, err)
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	lines := make(chan string, 10)
	go func() {
		for s := bufio.NewScanner(out); s.Scan(); {
			lines <- s.Text()
		}
	}()
	if line := receive(t, "the child begins the job", lines); line != "began 1" {
		t.Fatalf("the child says %q", line)
	}
	return cmd, func() { _, _ = fmt.Fprintln(in) }
}

func TestAKilledProcessLosesItsJobs(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.ask("1")
	cmd, _ := startChild(t, b.db.DSN)
	began := make(chan struct{}, 10)
	b.start(Work(spec(func(ctx context.Context, a chargeJob) (any, error) {
		began <- struct{}{}
		return receipt(ctx, a)
	})))
	select { // alive, it keeps them
	case <-began:
		t.Fatal("a job of a living process was taken")
	case <-time.After(sweepEvery * 3 / 2):
	}
	if !one[bool](t, b.db.Pool, "select state = 'running' and attempt = 1 from river_job") {
		t.Fatalf("a living process did not keep its job: %s", b.jobs())
	}
	must(t, cmd.Process.Kill())
	killed := time.Now()
	receive(t, "the job is taken over", began)
	if took := time.Since(killed); took > 5*time.Second {
		t.Errorf("taking over took %s", took)
	} else {
		t.Logf("taken over after %s", took.Round(time.Millisecond))
	}
	b.settled()
	if n := b.metric("feira_jobs_swept_total", ""); n != 1 {
		t.Errorf("%v jobs counted as swept", n)
	}
}

// A frozen process loses its jobs too, and what it writes when it wakes up is refused.
func TestAFrozenProcessLosesItsJobs(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.ask("1")
	cmd, finish := startChild(t, b.db.DSN)
	began := make(chan struct{}, 10)
	end := make(chan struct{})
	b.start(Work(spec(func(ctx context.Context, a chargeJob) (any, error) {
		began <- struct{}{}
		<-end
		return receipt(ctx, a)
	})))
	must(t, cmd.Process.Signal(syscall.SIGSTOP))
	receive(t, "the job is taken over", began)
	must(t, cmd.Process.Signal(syscall.SIGCONT))
	finish() // the child's outcome comes now, while the heir still works
	b.until("the child has noticed that its lock is gone and has another",
		"select ("+locksHeld+") = 2")
	if r := b.receipts("1"); len(r) != 0 {
		t.Errorf("receipts %v: the late outcome was written", r)
	}
	close(end)
	b.settled()
	if r := b.receipts("1"); len(r) != 1 || r[0] != "r-1" {
		t.Errorf("receipts %v", r)
	}
}

// A process that loses its lock stops its workers, and goes on once it has one again.
func TestALostLockStopsTheWorkers(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	began := make(chan struct{}, 10)
	ended := make(chan error, 10)
	first := true
	c := b.start(Work(spec(func(ctx context.Context, a chargeJob) (any, error) {
		began <- struct{}{}
		if first {
			first = false
			<-ctx.Done()
			ended <- context.Cause(ctx)
			return nil, ctx.Err()
		}
		return receipt(ctx, a)
	})))
	b.ask("1")
	receive(t, "the first attempt", began)
	must(t, c.Health())
	execSQL(t, openPool(t, b.db.DSN), "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'jobs-presence' and datname = current_database()")
	if cause := receive(t, "the worker is stopped", ended); cause == nil {
		t.Error("the worker was not stopped, but ran out")
	}
	receive(t, "the job is begun again", began)
	b.settled()
	if n := b.metric("feira_jobs_lock_losses_total", ""); n != 1 {
		t.Errorf("%v losses counted", n)
	}
	deadline := time.Now().Add(patience)
	for c.Health() != nil {
		if time.Now().After(deadline) {
			t.Fatalf("still not healthy: %v", c.Health())
		}
		<-time.After(5 * time.Millisecond)
	}
	if n := one[int](t, b.db.Pool, "select cardinality(attempted_by) from river_job"); n != 2 {
		t.Errorf("%d clients tried the job", n)
	}
}

func TestBacklogIsMeasured(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	must(t, Pause(t.Context(), b.db.Pool))
	b.ask("1")
	b.ask("2")
	execSQL(t, b.db.Pool, "update river_job set created_at = now() - interval '1 hour', scheduled_at = now() + interval '1 hour' where args ->> 'order' = '2'")
	b.start(Work(spec(receipt)))
	deadline := time.Now().Add(patience)
	for b.metric("feira_jobs_oldest_seconds", "") < 3600 {
		if time.Now().After(deadline) {
			t.Fatal("the backlog is not measured")
		}
		<-time.After(5 * time.Millisecond)
	}
	for state, want := range map[string]float64{"available": 1, "waiting": 1, "running": 0} {
		if n := b.metric("feira_jobs", state); n != want {
			t.Errorf("%v jobs %s, not %v", n, state, want)
		}
	}
}
