package operator

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"

	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/eventstore"
	"github.com/feira-shop/feira/shared/kafka"
	"github.com/feira-shop/feira/shared/pg"
)

// An operator in a process of its own is the test binary again, told by these variables what to do.
const (
	helperDSN     = "FEIRA_OPERATOR_TEST_DSN"
	helperBrokers = "FEIRA_OPERATOR_TEST_BROKERS"
	helperMember  = "FEIRA_OPERATOR_TEST_MEMBER"
	helperFreeze  = "FEIRA_OPERATOR_TEST_FREEZE" // the point at which it stops itself, in its second batch; "": none
)

// What a helper says at its end, before a number.
const refusedCommits = "refused commits: "

// runHelper runs an operator until SIGTERM, or until its standard input is closed, and gives the exit code.
func runHelper() int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		stop()
	}()
	pool, err := pg.Open(context.Background(), os.Getenv(helperDSN), pg.PoolOptions{Name: "helper", MaxConns: 4})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer pool.Close()
	o := New(Definition{
		Name: "tests.ledger", Topics: []events.Topic{facts}, MaxBatch: 10,
		Handler: func(*eventstore.Store) Handler { return &ledger{before: linger} },
	}, Options{
		Store:  eventstore.New(pool, eventstore.Options{Service: "tests", Registry: events.NewRegistry(happened{})}),
		Kafka:  kafka.Config{Brokers: strings.Split(os.Getenv(helperBrokers), ","), ClientID: "helper"},
		Member: os.Getenv(helperMember), Log: slog.New(slog.NewTextHandler(os.Stderr, nil)),
	})
	if at := point(os.Getenv(helperFreeze)); at != "" {
		passed := 0
		o.hooks.reached = func(p point) error {
			if p == at {
				passed++
			}
			if p == at && passed == 2 {
				return syscall.Kill(os.Getpid(), syscall.SIGSTOP)
			}
			return nil
		}
	}
	_ = o.Run(ctx)
	var fenced dto.Metric
	if err := o.metrics.fenced.Write(&fenced); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Fprintf(os.Stderr, "%s%v\n", refusedCommits, fenced.GetCounter().GetValue())
	return 0
}

// linger keeps a transaction open for a moment, in the server too, so that a signal finds one.
func linger(ctx context.Context, tx *eventstore.Tx, _ []Record) error {
	if err := tx.Exec(ctx, "select 1"); err != nil {
		return err
	}
	sleep(ctx, rand.N(20*time.Millisecond))
	return ctx.Err()
}

// process is a helper.
type process struct {
	t       *testing.T
	cmd     *exec.Cmd
	said    sync.WaitGroup
	refused atomic.Int64 // commits, as its log says
	counted string       // and as its metric says, after its end
}

// process starts a helper. One that still runs at the test's end gets a SIGTERM.
func (w *world) process(t *testing.T, member string, freeze point) *process {
	t.Helper()
	p := &process{t: t, cmd: exec.Command(os.Args[0])}
	p.cmd.Env = append(os.Environ(), helperDSN+"="+w.db.DSN, helperBrokers+"="+strings.Join(w.kafka.Brokers, ","),
		helperMember+"="+member, helperFreeze+"="+string(freeze))
	if _, err := p.cmd.StdinPipe(); err != nil { // it ends with this process
		t.Fatal(err)
	}
	log, err := p.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p.said.Go(func() {
		for lines := bufio.NewScanner(log); lines.Scan(); {
			if strings.Contains(lines.Text(), "a commit was refused") {
				p.refused.Add(1)
			}
			if n, ok := strings.CutPrefix(lines.Text(), refusedCommits); ok {
				p.counted = n
			}
		}
	})
	t.Cleanup(func() {
		if p.cmd.ProcessState == nil {
			p.thaw()
			p.end()
		}
	})
	return p
}

// end stops the process as an orchestrator does, demands that it ends well, and tells how long that took.
func (p *process) end() time.Duration {
	begun := time.Now()
	p.signal(syscall.SIGTERM)
	p.said.Wait()
	if err := p.cmd.Wait(); err != nil {
		p.t.Errorf("the process ended with %v, want exit code 0", err)
	}
	if want := strconv.FormatInt(p.refused.Load(), 10); p.counted != want {
		p.t.Errorf("%q refused commits were counted, want %s", p.counted, want)
	}
	return time.Since(begun)
}

// frozen waits until the process has stopped itself.
func (p *process) frozen() {
	limit := time.AfterFunc(patience, func() { _ = p.cmd.Process.Kill() })
	defer limit.Stop()
	var status syscall.WaitStatus
	if _, err := syscall.Wait4(p.cmd.Process.Pid, &status, syscall.WUNTRACED, nil); err != nil || !status.Stopped() {
		p.t.Fatalf("the process did not stop itself: %v, exit code %d", err, status.ExitStatus())
	}
}

func (p *process) thaw() { p.signal(syscall.SIGCONT) }

func (p *process) signal(s syscall.Signal) {
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Error(err)
	}
}
