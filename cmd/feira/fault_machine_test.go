package main_test

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/feira-shop/feira/internal/shop"
	"github.com/feira-shop/feira/shared/auth"
	"github.com/feira-shop/feira/shared/faulttest"
	"github.com/feira-shop/feira/shared/kafka"
	"github.com/feira-shop/feira/shared/pg"
)

// A machine is this test binary once more, as a process that serves the embedded Kafka or Postgres at an address of its
// own. Its data stay when it is stopped or killed.
const (
	machineRole = "FEIRA_TEST_MACHINE"
	machineDir  = "FEIRA_TEST_MACHINE_DIR"
	machineAt   = "FEIRA_TEST_MACHINE_AT"
)

// serve runs the machine that this process is to its end; false when it is none.
func serve() bool {
	role, dir, at := os.Getenv(machineRole), os.Getenv(machineDir), os.Getenv(machineAt)
	if role == "" {
		return false
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	run := serveKafka
	if role == "postgres" {
		run = servePostgres
	}
	if err := run(ctx, dir, at); err != nil {
		fmt.Fprintln(os.Stderr, role+":", err)
		stop()
		os.Exit(1) //nolint:gocritic // the defer is done by hand
	}
	return true
}

func serveKafka(ctx context.Context, dir, at string) error {
	k, err := kafka.StartEmbedded(ctx, kafka.EmbeddedOptions{Listen: at, Dir: dir})
	if err != nil {
		return err
	}
	fmt.Println("ready")
	<-ctx.Done()
	k.Close()
	return nil
}

func servePostgres(ctx context.Context, dir, at string) error {
	_, text, err := net.SplitHostPort(at)
	if err != nil {
		return err
	}
	port, err := strconv.Atoi(text)
	if err != nil {
		return err
	}
	s, err := pg.Start(ctx, pg.Options{Dir: dir, Port: port, MaxConns: 300, Progress: os.Stderr})
	if err != nil {
		return err
	}
	for _, name := range append(shop.Names(), "provider") {
		if err := s.CreateDatabase(ctx, name); err != nil {
			return err
		}
		fmt.Printf("%s=%s\n", postgresOf(name), s.DSN(name))
	}
	fmt.Println("ready")
	<-ctx.Done()
	return s.Stop()
}

func postgresOf(service string) string { return "FEIRA_POSTGRES_" + strings.ToUpper(service) }

// machine can be taken away and brought back.
type machine struct {
	t             *testing.T
	role, dir, at string
	now           *process
}

func newMachine(t *testing.T, role string) *machine {
	t.Helper()
	m := &machine{t: t, role: role, dir: newFolder(t), at: freeAddress(t)}
	m.start()
	return m
}

// start returns when the machine serves. What is left of one that was killed may still be ending.
func (m *machine) start() {
	m.t.Helper()
	self, err := os.Executable()
	if err != nil {
		m.t.Fatal(err)
	}
	eventually(m.t, m.role+" to serve", func() bool {
		m.now, err = launch(m.t, self, []string{machineRole + "=" + m.role, machineDir + "=" + m.dir, machineAt + "=" + m.at})
		if err != nil {
			m.t.Fatal(err)
		}
		return m.now.says("ready\n")
	})
}

// says waits until the process has said the text; false when it ended without.
func (p *process) says(text string) bool {
	for {
		more := p.out.next()
		if strings.Contains(p.out.String(), text) {
			return true
		}
		select {
		case <-more:
		case <-p.ended:
			return strings.Contains(p.out.String(), text)
		}
	}
}

// restart takes the machine away, by a stop or by a kill, and brings it back after a moment.
func (m *machine) restart(kill bool, away time.Duration) {
	m.t.Helper()
	if kill {
		m.now.kill()
	} else if code, _ := m.now.stop(syscall.SIGTERM); code != 0 {
		m.t.Errorf("%s ended with code %d:\n%s", m.role, code, m.now.out)
	}
	<-time.After(away)
	m.start()
}

// ground is what a shop of processes stands on: Kafka and Postgres, each a machine, a network before Postgres, and the
// file of addresses.
type ground struct {
	kafka, postgres *machine
	network         *faulttest.Network
	file            string
	tokenKey        string
}

// newGround makes the databases and topics, too. The provider will be at the given address.
func newGround(t *testing.T, providerAt string) *ground {
	t.Helper()
	g := &ground{kafka: newMachine(t, "kafka"), postgres: newMachine(t, "postgres")}
	g.network = faulttest.Before(t, g.postgres.at)
	dir := newFolder(t)
	g.file, g.tokenKey = filepath.Join(dir, "feira.env"), filepath.Join(dir, "token.pem")
	key, err := auth.LoadOrCreateKey(g.tokenKey)
	jwks := filepath.Join(dir, "jwks.json")
	if err == nil {
		err = os.WriteFile(jwks, key.JWKS(), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	var file strings.Builder
	for line := range strings.Lines(g.postgres.now.out.String()) {
		name, dsn, ok := strings.Cut(strings.TrimSpace(line), "=")
		if u, err := url.Parse(dsn); ok && err == nil {
			u.Host = g.network.Address()
			fmt.Fprintf(&file, "%s=%s\n", name, u)
		}
	}
	for name, value := range map[string]string{
		"KAFKA": g.kafka.at, "PROVIDER_URL": "http://" + providerAt, "PROVIDER_KEY": "sk_soak", "JWKS": jwks, "TOKEN_KEY": g.tokenKey,
		"DEADLINE": "10m", "HOLD": "2s", "RATE": "0", "LOG_FORMAT": "json", "LOG_LEVEL": "error",
	} {
		fmt.Fprintf(&file, "FEIRA_%s=%s\n", name, value)
	}
	if err := os.WriteFile(g.file, []byte(file.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	g.feira(t, "migrate", "all", "provider")
	return g
}

func (g *ground) feira(t *testing.T, args ...string) string {
	t.Helper()
	return call(t, nil, append([]string{"--env-file=" + g.file}, args...)...).ok(t)
}
