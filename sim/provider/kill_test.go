package provider

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/feira-shop/feira/shared/pg"
	"github.com/feira-shop/feira/shared/pg/pgtest"
)

const (
	childEnv = "FEIRA_TEST_PROVIDER_DSN"
	// failpointEnv kills the child at its first commit: "before" or "after" it.
	failpointEnv = "FEIRA_TEST_PROVIDER_FAILPOINT"
)

// child is the provider as a process; it prints its address.
func child(dsn string) int {
	pool, err := pg.Open(context.Background(), dsn, pg.PoolOptions{Name: "provider", MaxConns: 4})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	s := New(Options{Pool: pool, Key: testKey})
	die := func() { _ = syscall.Kill(os.Getpid(), syscall.SIGKILL); select {} }
	switch os.Getenv(failpointEnv) {
	case "before":
		s.store.beforeCommit = die
	case "after":
		s.store.afterCommit = die
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Println("http://" + listener.Addr().String())
	fmt.Fprintln(os.Stderr, http.Serve(listener, s.Handler()))
	return 1
}

// spawn starts a child and returns a client of it, and a function that kills it if it has not ended yet.
func spawn(t *testing.T, dsn, failpoint string) (client, func()) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"="+dsn, failpointEnv+"="+failpoint)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("the child did not say its address: %v", err)
	}
	var once sync.Once
	kill := func() {
		once.Do(func() {
			_ = cmd.Process.Kill() // may be dead already
			_ = cmd.Wait()
		})
	}
	t.Cleanup(kill)
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	return client{strings.TrimSpace(line), &http.Client{Transport: transport}}, kill
}

// TestKilledBetweenEffectAndAnswer kills the process right before and right after the commit of each operation.
func TestKilledBetweenEffectAndAnswer(t *testing.T) {
	t.Parallel()
	for _, failpoint := range []string{"before", "after"} {
		t.Run(failpoint, func(t *testing.T) {
			t.Parallel()
			db := pgtest.New(t, Migrations())
			path, body, key := "/v1/authorizations", authorization("tok_visa_x", "100"), "a"
			for step := 1; ; step++ {
				c, kill := spawn(t, db.DSN, failpoint)
				if got, err := c.send(http.MethodPost, path, key, body); err == nil {
					t.Fatalf("the process survived its failpoint: %s", got.body)
				}
				kill()
				c, kill = spawn(t, db.DSN, "")
				got := c.post(t, path, key, body)
				if got.status >= 300 || got.replayed != (failpoint == "after") {
					t.Fatalf("after the kill: %d %s, replayed %t", got.status, got.body, got.replayed)
				}
				kill()
				if n := count(t, db, "select count(*) from entries"); n != step {
					t.Fatalf("%d effects after %d operations", n, step)
				}
				switch step {
				case 1:
					path, body, key = "/v1/authorizations/"+got.fields.ID+"/capture", `{"amount":100}`, "c"
				case 2:
					path, body, key = strings.Replace(path, "capture", "refunds", 1), `{"amount":30}`, "r"
				default:
					consistent(t, db)
					return
				}
			}
		})
	}
}

// TestKilledAtRandomUnderLoad kills the process again and again while clients retry each request until it is
// answered: in the end every payment was authorised, captured and half refunded exactly once.
func TestKilledAtRandomUnderLoad(t *testing.T) {
	t.Parallel()
	const payments, workers, kills = 240, 8, 6
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 1))
	db := pgtest.New(t, Migrations())
	var current atomic.Pointer[client]
	first, kill := spawn(t, db.DSN, "")
	current.Store(&first)

	next, answered := make(chan int), make(chan struct{}, payments*3)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	var all sync.WaitGroup
	for range workers {
		all.Go(func() {
			for n := range next {
				pay(ctx, &current, n, answered)
			}
		})
	}
	all.Go(func() {
		defer close(next)
		for n := range payments {
			next <- n
		}
	})
	for range kills {
		for range payments * 3 / (kills + 1) / 2 { // the load has moved on
			select {
			case <-answered:
			case <-ctx.Done():
				t.Fatal("the load stands still")
			}
		}
		time.Sleep(time.Duration(random.IntN(5)) * time.Millisecond) // at no particular moment
		kill()
		var c client
		c, kill = spawn(t, db.DSN, "")
		current.Store(&c)
	}
	all.Wait()
	kill()
	if n := count(t, db, "select count(*) from entries"); n != payments*3 {
		t.Errorf("%d effects, want %d", n, payments*3)
	}
	if n := count(t, db, "select count(*) from authorizations where status = 'captured' and captured = 100 and refunded = 50"); n != payments {
		t.Errorf("%d payments right, want %d", n, payments)
	}
	consistent(t, db)
}

func pay(ctx context.Context, current *atomic.Pointer[client], n int, answered chan<- struct{}) {
	until := func(path, key, body string) answer {
		for ctx.Err() == nil {
			got, err := current.Load().send(http.MethodPost, path, fmt.Sprintf("%s-%d", key, n), body)
			if err == nil && got.status < 500 {
				answered <- struct{}{}
				return got
			}
			time.Sleep(5 * time.Millisecond) // the process is being started again
		}
		return answer{}
	}
	a := until("/v1/authorizations", "a", authorization("tok_visa_x", "100"))
	until("/v1/authorizations/"+a.fields.ID+"/capture", "c", `{"amount":100}`)
	until("/v1/authorizations/"+a.fields.ID+"/refunds", "r", `{"amount":50}`)
}
