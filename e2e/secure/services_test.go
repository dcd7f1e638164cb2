//go:build e2e

package secure

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/pg/pgtest"
)

// services runs feira as it is deployed: settings by the environment, the password in a file, strict about safety. The
// catalog publishes its products through its relay, and orders reads them.
func services(ctx context.Context, t *testing.T, c *cluster) {
	binary := cmp.Or(os.Getenv("FEIRA_BINARY"), build(ctx, t))
	orders, catalog := pgtest.New(t), pgtest.New(t)
	environment := append(os.Environ(),
		"FEIRA_KAFKA="+strings.Join(c.config("SIGNED").Brokers, ","), "FEIRA_KAFKA_TLS=true", "FEIRA_KAFKA_CA="+c.authority.File,
		"FEIRA_KAFKA_SASL=scram-sha-512", "FEIRA_KAFKA_USER="+user, "FEIRA_KAFKA_PASSWORD_FILE="+secretFile(t), "FEIRA_STRICT=true",
		"FEIRA_POSTGRES_ORDERS="+orders.DSN, "FEIRA_POSTGRES_CATALOG="+catalog.DSN,
	)
	feira := func(args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(ctx, binary, args...)
		cmd.Env = environment
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("feira %s: %v\n%s", strings.Join(args, " "), err, out)
		}
		return string(out)
	}
	if said := feira("migrate", "orders", "catalog"); !strings.Contains(said, fmt.Sprintf("checked %d topics", len(events.Topics()))) {
		t.Errorf("migrate said:\n%s", said)
	}
	keys := t.TempDir()
	feira("token", "--key="+keys+"/key.pem", "--jwks="+keys+"/jwks.json")

	address := fmt.Sprintf("127.0.0.1:%d", freePort(t))
	var said output
	process := exec.CommandContext(ctx, binary, "run", "orders", "catalog", "--jwks="+keys+"/jwks.json", "--listen="+address)
	process.Env, process.Stdout, process.Stderr = environment, &said, &said
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	ended := false
	defer func() {
		if !ended {
			_ = process.Process.Kill()
			_ = process.Wait()
		}
		if t.Failed() {
			t.Logf("feira run said:\n%s", said.String())
		}
	}()
	eventually(ctx, t, "the services to be ready", func() error { return ready(ctx, address) })
	eventually(ctx, t, "orders to know every product", func() error {
		var products, known int64
		if err := catalog.Pool.QueryRow(ctx, "select count(*) from events").Scan(&products); err != nil {
			return err
		}
		if err := orders.Pool.QueryRow(ctx, "select coalesce(sum(greatest(next_offset, 0)), 0) from checkpoints where topic = $1", events.Catalog.Name).Scan(&known); err != nil {
			return err
		}
		if products == 0 || known < products {
			return fmt.Errorf("%d of %d", known, products)
		}
		return nil
	})
	if err := process.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	err := process.Wait()
	ended = true
	if err != nil || strings.Contains(said.String(), "sesame") {
		t.Errorf("feira ended with %v, or shows the password", err)
	}
}

func build(ctx context.Context, t *testing.T) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "feira")
	if out, err := exec.CommandContext(ctx, "go", "build", "-o", binary, "../../cmd/feira").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return binary
}

func ready(ctx context.Context, address string) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/readyz", nil)
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("status %d", answer.StatusCode)
	}
	return nil
}

// output collects what a process says while it runs.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}
