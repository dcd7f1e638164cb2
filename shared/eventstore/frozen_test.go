package eventstore_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	programs "os/exec" // exec runs SQL in these tests
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/eventstore"
	"github.com/feira-shop/feira/shared/pg"
	"github.com/feira-shop/feira/shared/pg/pgtest"
)

// A client in a process of its own, which can be frozen, is the test binary again, told by these variables what to do.
const (
	frozenDSN  = "FEIRA_STORE_TEST_DSN"
	frozenRole = "FEIRA_STORE_TEST_ROLE"
)

// What a client does until it is killed.
const (
	appends    = "appends"    // through a store, on eight streams at once, with no pause
	holdsALock = "holds lock" // dwells between the insert of events and the commit, the worst moment of all
)

// runFrozen prints a line when the client is at it.
func runFrozen() error {
	ctx := context.Background()
	if os.Getenv(frozenRole) == holdsALock {
		return dwell(ctx)
	}
	pool, err := pg.Open(ctx, os.Getenv(frozenDSN), pg.PoolOptions{Name: "frozen"})
	if err != nil {
		return err
	}
	s := eventstore.New(pool, eventstore.Options{Service: "counter", Registry: events.NewRegistry(Counted{})})
	go func() { _ = s.Run(ctx) }()
	errs := make(chan error)
	for i := range 8 {
		go func() {
			for version := int64(0); ; version++ {
				encoded, err := eventstore.Encode(events.Meta{ID: uuid.NewString(), Time: time.Now().UTC()}, Counted{})
				if err == nil {
					_, err = s.Append(ctx, eventstore.Append{
						Stream: fmt.Sprintf("frozen-%d", i), Expected: version, Shape: 1, State: []byte("{}"), Events: []eventstore.Event{encoded},
					})
				}
				if err != nil {
					errs <- err
					return
				}
				if i == 0 && version == 100 {
					fmt.Println("ready")
				}
			}
		}()
	}
	return <-errs
}

func dwell(ctx context.Context) error {
	conn, err := pg.Connect(ctx, os.Getenv(frozenDSN), "frozen", nil)
	if err != nil {
		return err
	}
	if _, err := conn.Exec(ctx, "begin"); err != nil {
		return err
	}
	if _, err := conn.Exec(ctx, storeLock); err != nil {
		return err
	}
	fmt.Println("ready")
	time.Sleep(time.Hour)
	return nil
}

// frozenClient starts a client and waits until it is at it. It is killed at the end of the test.
func frozenClient(t *testing.T, dsn, role string) *os.Process {
	t.Helper()
	cmd := programs.Command(os.Args[0])
	cmd.Env = append(os.Environ(), frozenDSN+"="+dsn, frozenRole+"="+role)
	cmd.Stderr = t.Output()
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatalf("the client said %q: %v", line, err)
	}
	return cmd.Process
}

// A client that is frozen, wherever that happens to catch it, keeps the store from others no longer than the server lets
// a transaction idle (3 s). In the loop it hardly ever holds anything: an append and its commit are one message.
func TestAFrozenClientDoesNotKeepTheStoreLock(t *testing.T) {
	t.Parallel()
	for role, freezes := range map[string]int{appends: 3, holdsALock: 1} {
		t.Run(role, func(t *testing.T) {
			t.Parallel()
			db := pgtest.New(t, eventstore.Migrations())
			s := start(t, open(t, db.DSN, 2))
			client := frozenClient(t, db.DSN, role)
			var worst time.Duration
			version := int64(0)
			for range freezes {
				must(t, client.Signal(syscall.SIGSTOP))
				for began := time.Now(); time.Since(began) < 1500*time.Millisecond; version++ {
					before := time.Now()
					ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
					_, err := s.Append(ctx, counted(t, "other", version))
					cancel()
					must(t, err)
					worst = max(worst, time.Since(before))
				}
				must(t, client.Signal(syscall.SIGCONT))
			}
			t.Logf("worst append %s of %d", worst, version)
			if worst > 4*time.Second {
				t.Errorf("an append took %s beside a frozen client", worst)
			}
			if role == holdsALock && worst < time.Second {
				t.Errorf("an append took %s: the frozen client held no lock, so this proves nothing", worst)
			}
		})
	}
}
