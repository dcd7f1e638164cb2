package relay

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/kafka"
)

// A relay in a process of its own is the test binary again, told by these variables where store and broker are.
const (
	helperDSN     = "FEIRA_RELAY_TEST_DSN" // "broker": the process is a broker instead
	helperBrokers = "FEIRA_RELAY_TEST_BROKERS"
	helperSignal  = "FEIRA_RELAY_TEST_SIGNAL" // what it gives itself, and where; see signalAt
)

// signalAt has a process give itself a signal when it passes a point for the nth time.
func signalAt(p point, nth int, s syscall.Signal) string {
	return fmt.Sprintf("%s=%s %d %d", helperSignal, p, nth, s)
}

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
	r.timing.poll = 20 * time.Millisecond // there is no store in this process to wake it
	if text := os.Getenv(helperSignal); text != "" {
		r.reached = signaller(text)
	}
	if err := r.Run(ctx); err != nil {
		os.Exit(1)
	}
}

func signaller(text string) func(point) {
	var at point
	var left int
	var s syscall.Signal
	if n, err := fmt.Sscanf(text, "%s %d %d", &at, &left, &s); n != 3 {
		_, _ = fmt.Fprintf(os.Stderr, "%s=%q: %v\n", helperSignal, text, err)
		os.Exit(1)
	}
	awake := make(chan os.Signal, 1)
	signal.Notify(awake, syscall.SIGCONT)
	return func(p point) {
		if p != at {
			return
		}
		if left--; left == 0 {
			_ = syscall.Kill(os.Getpid(), s) // to itself, it cannot fail
			<-awake                          // this thread may run on until another one has taken the signal
		}
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

// process is a relay that can be frozen and killed.
type process struct {
	t     testing.TB
	cmd   *exec.Cmd
	stdin io.Closer
	ended bool
}

func (e *env) process(settings ...string) *process {
	e.t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), helperDSN+"="+e.db.DSN, helperBrokers+"="+strings.Join(e.broker.Brokers(), ","))
	cmd.Env = append(cmd.Env, settings...)
	cmd.Stderr = e.t.Output()
	stdin, err := cmd.StdinPipe()
	if err != nil {
		e.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		e.t.Fatal(err)
	}
	p := &process{t: e.t, cmd: cmd, stdin: stdin}
	e.t.Cleanup(p.stop)
	return p
}

// stop ends the process in good order.
func (p *process) stop() {
	if p.ended {
		return
	}
	p.ended = true
	_ = p.cmd.Process.Signal(syscall.SIGCONT)
	_ = p.stdin.Close()
	if err := p.cmd.Wait(); err != nil {
		p.t.Errorf("the helper ended with %v", err)
	}
}

// killed waits until the process has killed itself.
func (p *process) killed() {
	p.t.Helper()
	p.ended = true
	tooLate := false
	timer := time.AfterFunc(patience, func() {
		tooLate = true
		_ = p.cmd.Process.Kill()
	})
	_ = p.cmd.Wait()
	_ = p.stdin.Close()
	status, _ := p.cmd.ProcessState.Sys().(syscall.WaitStatus)
	if timer.Stop(); tooLate || status.Signal() != syscall.SIGKILL {
		p.t.Fatalf("the process did not kill itself within %s: %s", patience, p.cmd.ProcessState)
	}
}

// freeze returns when the process has stopped.
func (p *process) freeze() {
	if err := p.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		p.t.Error(err)
	}
	p.frozen()
}

// frozen returns when the process has stopped, by whose signal ever.
func (p *process) frozen() {
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
