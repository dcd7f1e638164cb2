//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// stopWithin is how long a part of the shop may take from SIGTERM to its end.
const stopWithin = 30 * time.Second

// part is one process of the shop: a service, the gateway or the provider. It may be started again on its address.
type part struct {
	name    string // also its member name
	address string // host:port of its HTTP side
	binary  string
	args    []string
	env     []string
	logFile string

	mu    sync.Mutex
	cmd   *exec.Cmd
	ended chan struct{}
}

// start starts the process and does not wait for it to be ready.
func (p *part) start() error {
	log, err := os.OpenFile(p.logFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	cmd := exec.Command(p.binary, p.args...)
	cmd.Env, cmd.Stdout, cmd.Stderr = p.env, log, log
	ended, started := make(chan struct{}), make(chan error, 1)
	go func() {
		defer close(ended)
		defer func() { _ = log.Close() }()
		release, err := startBound(cmd)
		defer release()
		started <- err
		if err == nil {
			_ = cmd.Wait() // the exit code tells
		}
	}()
	if err := <-started; err != nil {
		return fmt.Errorf("start %s: %w", p.name, err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cmd, p.ended = cmd, ended
	return nil
}

func (p *part) now() (*exec.Cmd, chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.cmd, p.ended
}

// signal sends a signal, if the process runs.
func (p *part) signal(s syscall.Signal) error {
	cmd, ended := p.now()
	if cmd == nil {
		return nil
	}
	select {
	case <-ended:
		return nil
	default:
		return cmd.Process.Signal(s)
	}
}

// kill ends the process as a power cut would.
func (p *part) kill() error {
	if err := p.signal(syscall.SIGKILL); err != nil {
		return err
	}
	if _, ended := p.now(); ended != nil {
		<-ended
	}
	return nil
}

// stop asks the process to end, which must go well and in time.
func (p *part) stop() error {
	if err := p.signal(syscall.SIGTERM); err != nil {
		return err
	}
	cmd, ended := p.now()
	if cmd == nil {
		return nil
	}
	select {
	case <-ended:
		if code := cmd.ProcessState.ExitCode(); code != 0 {
			return fmt.Errorf("%s ended with exit code %d after SIGTERM", p.name, code)
		}
		return nil
	case <-time.After(stopWithin):
		return errors.Join(fmt.Errorf("%s has not ended %s after SIGTERM", p.name, stopWithin), p.kill())
	}
}

// ready waits until the process says that all its parts are well.
func (p *part) ready(ctx context.Context) error {
	return await(ctx, p.name+" to be ready", func(ctx context.Context) error {
		if _, ended := p.now(); isClosed(ended) {
			return fmt.Errorf("%w: it has ended\n%s", errHopeless, p.troubles(time.Time{}))
		}
		status, body, err := p.get(ctx, "/readyz")
		if err == nil && status != http.StatusOK {
			err = fmt.Errorf("%d %s", status, body)
		}
		return err
	})
}

func isClosed(c chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func (p *part) get(ctx context.Context, path string) (status int, body string, err error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+p.address+path, nil)
	if err != nil {
		return 0, "", err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	return res.StatusCode, string(text), err
}

// metric is the sum of a counter or gauge over all its labels.
func (p *part) metric(ctx context.Context, name string) (float64, error) {
	_, body, err := p.get(ctx, "/metrics")
	if err != nil {
		return 0, err
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(body))
	if err != nil {
		return 0, err
	}
	sum := 0.0
	for _, m := range families[name].GetMetric() {
		sum += m.GetCounter().GetValue() + m.GetGauge().GetValue() // it is one of them
	}
	return sum, nil
}

// shownLines is how much of a log is shown with a test that failed.
const shownLines = 12

// troubles are the last lines of the log since a moment that are more than information, without the answers to us that
// it is not ready.
func (p *part) troubles(since time.Time) string {
	text, err := os.ReadFile(p.logFile)
	if err != nil {
		return err.Error()
	}
	var lines []string
	for line := range strings.Lines(string(text)) {
		var entry struct {
			Time       time.Time
			Level, Msg string
		}
		structured := json.Unmarshal([]byte(line), &entry) == nil // else it is the reason of an end, or a stack
		if !structured || entry.Time.After(since) && entry.Level != "INFO" && entry.Msg != "not ready" {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines[max(0, len(lines)-shownLines):], "")
}
