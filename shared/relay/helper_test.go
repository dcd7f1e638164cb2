package relay

import (
	"context"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/kafka"
)

// A relay in a process of its own is the test binary again, told by these variables where store and broker are.
const (
	helperDSN     = "FEIRA_RELAY_TEST_DSN" // "broker": the process is a broker instead
	helperBrokers = "FEIRA_RELAY_TEST_BROKERS"
)

// runHelper relays until its standard input is closed.
func runHelper() {
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	if os.Getenv(helperDSN) == "broker" {
		runBroker(ctx)
		return
	}
	r := New(Options{
		DSN:   os.Getenv(helperDSN),
		Kafka: kafka.Config{Brokers: strings.Split(os.Getenv(helperBrokers), ","), ClientID: "helper"},
		Topic: events.Orders,
		Log:   slog.New(slog.NewTextHandler(os.Stderr, nil)),
	})
	if err := r.Run(ctx); err != nil {
		os.Exit(1)
	}
}

// runBroker prints its address, so that a benchmark can tell its own CPU time from the broker's.
func runBroker(ctx context.Context) {
	b, err := kafka.StartEmbedded(ctx, kafka.EmbeddedOptions{})
	if err != nil {
		os.Exit(1)
	}
	_, _ = os.Stdout.WriteString(b.Brokers()[0] + "\n")
	<-ctx.Done()
	b.Close()
}

// process is a relay that can be frozen.
type process struct {
	t   testing.TB
	cmd *exec.Cmd
}

func (e *env) process() *process {
	e.t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), helperDSN+"="+e.db.DSN, helperBrokers+"="+strings.Join(e.broker.Brokers(), ","))
	cmd.Stderr = e.t.Output()
	stdin, err := cmd.StdinPipe()
	if err != nil {
		e.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		e.t.Fatal(err)
	}
	e.t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGCONT)
		_ = stdin.Close()
		if err := cmd.Wait(); err != nil {
			e.t.Errorf("the helper ended with %v", err)
		}
	})
	return &process{e.t, cmd}
}

// freeze returns when the process has stopped.
func (p *process) freeze() {
	if err := p.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		p.t.Error(err)
	}
	var status syscall.WaitStatus
	if _, err := syscall.Wait4(p.cmd.Process.Pid, &status, syscall.WUNTRACED, nil); err != nil || !status.Stopped() {
		p.t.Errorf("the process did not stop: %v", err)
	}
}

func (p *process) thaw() {
	if err := p.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		p.t.Error(err)
	}
}
