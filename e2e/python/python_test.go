//go:build e2e

package python_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// patience bounds what the test waits for, an installation from a package index included.
const patience = 5 * time.Minute

// A five-line program in Python sends a thousand clicks, and the API shows a thousand.
func TestFiveLinesOfPython(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	dir, err := os.MkdirTemp("", "feira-python-")
	must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	must(t, os.Chmod(dir, 0o755)) // Postgres' own user must be able to enter
	binary := os.Getenv("FEIRA_BINARY")
	if binary == "" {
		binary = filepath.Join(dir, "feira")
		run(ctx, t, "go", "build", "-o", binary, "../../cmd/feira")
	}
	venv := filepath.Join(dir, "venv")
	run(ctx, t, "python3", "-m", "venv", venv)
	run(ctx, t, filepath.Join(venv, "bin", "pip"), "install", "--quiet", "--disable-pip-version-check", "kafka-python>=2.2")

	env := demo(ctx, t, binary, filepath.Join(dir, "data"))
	token := strings.TrimSpace(run(ctx, t, binary, "--env-file="+filepath.Join(dir, "data", "feira.env"), "token"))
	program, err := os.ReadFile("../../examples/python/produce.py")
	must(t, err)
	const asWritten = "localhost:9092"
	if lines := bytes.Count(program, []byte("\n")); lines != 5 || !bytes.Contains(program, []byte(asWritten)) {
		t.Fatalf("the program has %d lines:\n%s", lines, program)
	}
	here := filepath.Join(dir, "produce.py")
	must(t, os.WriteFile(here, bytes.Replace(program, []byte(asWritten), []byte(env["FEIRA_KAFKA"]), 1), 0o600))
	run(ctx, t, filepath.Join(venv, "bin", "python"), here)
	for total := int64(-1); total != 1000; {
		select {
		case <-ctx.Done():
			t.Fatalf("the API shows %d clicks", total)
		case <-time.After(100 * time.Millisecond):
		}
		if total = clicks(ctx, t, env["FEIRA_URL"], token); total > 1000 {
			t.Fatalf("the API shows %d clicks", total)
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// run runs a program to its end and gives what it said.
func run(ctx context.Context, t *testing.T, name string, args ...string) string {
	t.Helper()
	var errs bytes.Buffer
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s%s", name, strings.Join(args, " "), err, out, &errs)
	}
	return string(out)
}

// demo starts a demo and gives its addresses once it trades.
func demo(ctx context.Context, t *testing.T, binary, data string) map[string]string {
	t.Helper()
	cmd := exec.CommandContext(ctx, binary, "demo", "--listen=127.0.0.1:0", "--kafka-listen=127.0.0.1:0", "--shoppers=0", "--data="+data)
	said, err := cmd.StdoutPipe()
	must(t, err)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = time.Minute
	must(t, cmd.Start())
	ended := make(chan struct{})
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM) // it may have ended
		<-ended
	})
	ready := make(chan bool, 1)
	go func() {
		defer close(ended)
		for lines := bufio.NewScanner(said); lines.Scan(); {
			if strings.Contains(lines.Text(), "A checkout to paste") {
				ready <- true
			}
		}
		_ = cmd.Wait() // the test tells
	}()
	select {
	case <-ready:
	case <-ended:
		t.Fatal("the demo ended by itself")
	case <-ctx.Done():
		t.Fatal("the demo does not get ready")
	}
	raw, err := os.ReadFile(filepath.Join(data, "feira.env"))
	must(t, err)
	env := map[string]string{}
	for line := range strings.Lines(string(raw)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		env[name] = value
	}
	return env
}

// clicks asks the API for all clicks there are.
func clicks(ctx context.Context, t *testing.T, shop, token string) int64 {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, shop+"/v1/analytics/clicks?acao=clique", http.NoBody)
	must(t, err)
	req.Header.Set("Authorization", "Bearer "+token)
	res, err := http.DefaultClient.Do(req)
	must(t, err)
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	must(t, err)
	var page struct {
		Total *int64 `json:"total"`
	}
	if err := json.Unmarshal(body, &page); err != nil || page.Total == nil {
		t.Fatalf("%s: %s", res.Status, body)
	}
	return *page.Total
}
