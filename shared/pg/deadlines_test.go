package pg

import (
	"context"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/feira-shop/feira/shared/faulttest"
)

// Callers that give up before their answer comes, and many of them: each takes its connection down. The server is not
// flooded with new ones for it, and serves again soon after.
func TestFaultImpatientCallers(t *testing.T) {
	t.Parallel()
	run := faulttest.Begin(t, faulttest.Plan{
		Name: "Impatient callers",
		Does: "500 requests a second with deadlines of 50 ms against a query of 200 ms: at most MaxConns + 2 connections, and answers again within 5 s",
	})
	const size = 8
	_, dsn := database(t, "impatient")
	pool := openPool(t, dsn, PoolOptions{Name: "impatient", MaxConns: size})
	watcher, err := Connect(t.Context(), dsn, "watcher", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = watcher.Close(context.Background()) }()

	most := 0
	var callers sync.WaitGroup
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	end := time.Now().Add(run.For(3*time.Second, 30*time.Second))
	for i := 0; time.Now().Before(end); i++ {
		<-tick.C
		callers.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			defer cancel()
			if _, err := pool.Exec(ctx, "select pg_sleep(0.2)"); err == nil {
				t.Error("a query of 200 ms was answered within 50")
			}
		})
		run.Count("requests", 1)
		if i%20 != 0 {
			continue
		}
		var n int
		if err := watcher.QueryRow(t.Context(), "select count(*) from pg_stat_activity where application_name = 'impatient'").Scan(&n); err != nil {
			t.Fatal(err)
		}
		most = max(most, n)
	}
	run.Found("connections at most", strconv.Itoa(most))
	if most > size+2 {
		t.Errorf("%d connections of a pool of %d, want at most 2 more", most, size)
	}
	callers.Wait()
	begun := time.Now()
	for range size {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		if _, err := pool.Exec(ctx, "select 1"); err != nil {
			t.Errorf("no answer within 5 s: %v", err)
		}
		cancel()
	}
	run.Found("answers again after", time.Since(begun).Round(time.Millisecond).String())
}
