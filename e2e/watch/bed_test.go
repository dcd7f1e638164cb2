//go:build e2e

package watch

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

const (
	startWithin  = 3 * time.Minute
	stopWithin   = 30 * time.Second
	askWithin    = 30 * time.Second
	demoAddress  = "127.0.0.1:8080" // in demo.yml
	newPerSecond = "20"
)

// bed is a running demo and a Prometheus that scrapes it.
type bed struct {
	dir        string
	prometheus string // address
}

// start starts both; they end with the test.
func start(t *testing.T) *bed {
	t.Helper()
	prometheus := program(t, "PROMETHEUS", "prometheus") // before anything takes time
	dir, err := os.MkdirTemp("", "feira-watch-")
	if err == nil {
		err = os.Chmod(dir, 0o755) // Postgres, which refuses root, must be able to enter
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("logs are kept in %s", dir)
			return
		}
		_ = os.RemoveAll(dir)
	})
	b := &bed{dir: dir, prometheus: free(t)}
	b.run(t, "demo", binary(t, dir), "demo", "--data", filepath.Join(dir, "data"), "--listen", "127.0.0.1:0",
		"--kafka-listen", "127.0.0.1:0", "--shoppers", newPerSecond)
	shop := b.address(t)
	b.configure(t, shop)
	b.run(t, "prometheus", prometheus, "--config.file", filepath.Join(dir, "demo.yml"), "--storage.tsdb.path",
		filepath.Join(dir, "tsdb"), "--web.listen-address", b.prometheus)
	t.Logf("the shop is %s, Prometheus http://%s", shop, b.prometheus)
	return b
}

// binary is the program under test.
func binary(t *testing.T, dir string) string {
	t.Helper()
	if path := os.Getenv("FEIRA_BINARY"); path != "" {
		return path
	}
	path := filepath.Join(dir, "feira")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", path, "../../cmd/feira").CombinedOutput(); err != nil {
		t.Fatalf("build feira: %v\n%s", err, out)
	}
	return path
}

// free is an address that nobody listens on.
func free(t *testing.T) string {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// run starts a program whose output goes to a file. At the test's end it is asked to stop, and must.
func (b *bed) run(t *testing.T, name, path string, args ...string) {
	t.Helper()
	log, err := os.Create(filepath.Join(b.dir, name+".log"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = stopWithin
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stop()
		_ = cmd.Wait() // of a program that was told to stop
		_ = log.Close()
		if code := cmd.ProcessState.ExitCode(); code != 0 {
			t.Errorf("%s ended with exit code %d: %s", name, code, tail(log.Name()))
		}
	})
}

func tail(file string) string {
	text, err := os.ReadFile(file)
	if err != nil {
		return err.Error()
	}
	return string(text[max(0, len(text)-2000):])
}

// address waits for the file that a demo writes once it is ready.
func (b *bed) address(t *testing.T) (shop string) {
	t.Helper()
	until(t, "the demo to be ready (see demo.log)", func() error {
		text, err := os.ReadFile(filepath.Join(b.dir, "data", "feira.env"))
		if err != nil {
			return err
		}
		_, rest, _ := strings.Cut("\n"+string(text), "\nFEIRA_URL=http://")
		shop, _, _ = strings.Cut(rest, "\n")
		if shop == "" {
			return fmt.Errorf("feira.env has no FEIRA_URL: %s", text)
		}
		return nil
	})
	return shop
}

// configure has Prometheus run with the files of the repository, but for the demo's address.
func (b *bed) configure(t *testing.T, shop string) {
	t.Helper()
	for _, name := range []string{"demo.yml", "alerts.yml"} {
		text, err := os.ReadFile(filepath.Join(rules, name))
		if err != nil {
			t.Fatal(err)
		}
		if name == "demo.yml" && !bytes.Contains(text, []byte(demoAddress)) {
			t.Fatalf("demo.yml does not scrape %s", demoAddress)
		}
		text = bytes.ReplaceAll(text, []byte(demoAddress), []byte(shop))
		if err := os.WriteFile(filepath.Join(b.dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// until looks every second whether something has come about.
func until(t *testing.T, what string, look func() error) {
	t.Helper()
	limit := time.NewTimer(startWithin)
	defer limit.Stop()
	again := time.NewTicker(time.Second)
	defer again.Stop()
	for {
		err := look()
		if err == nil {
			return
		}
		select {
		case <-limit.C:
			t.Fatalf("waited %s for %s: %v", startWithin, what, err)
		case <-t.Context().Done():
			t.Fatalf("while waiting for %s: %v", what, err)
		case <-again.C:
		}
	}
}

// get asks Prometheus and decodes the data of its answer.
func (b *bed) get(t *testing.T, path string, form url.Values, into any) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), askWithin)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+b.prometheus+path+"?"+form.Encode(), nil)
	if err != nil {
		return err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	var answer struct {
		Status, Error string
		Data          json.RawMessage
	}
	if err := json.NewDecoder(res.Body).Decode(&answer); err != nil {
		return fmt.Errorf("%s: %s: %w", path, res.Status, err)
	}
	if answer.Status != "success" {
		return fmt.Errorf("%s: %s", path, answer.Error)
	}
	return json.Unmarshal(answer.Data, into)
}
