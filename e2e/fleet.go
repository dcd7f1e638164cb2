//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/feira-shop/feira/internal/shop"
	"github.com/feira-shop/feira/internal/shoptest"
	"github.com/feira-shop/feira/shared/auth"
	"github.com/feira-shop/feira/shared/kafka"
)

const (
	gateway  = "gateway"
	hold     = "4s"  // of a suspected duplicate: one of the journeys waits for its end
	deadline = "10m" // no order is to miss it while something is down
	commands = 3 * time.Minute
)

// build makes the program under test.
func (s *stack) build(ctx context.Context) error {
	if s.binary != "" {
		return nil
	}
	s.binary = filepath.Join(s.dir, "feira")
	out, err := exec.CommandContext(ctx, "go", "build", "-o", s.binary, "../cmd/feira").CombinedOutput()
	if err != nil {
		return fmt.Errorf("build feira: %w\n%s", err, out)
	}
	return nil
}

func postgresOf(service string) string { return "FEIRA_POSTGRES_" + strings.ToUpper(service) }

// configure makes the secrets and the environment of the shop's processes.
func (s *stack) configure(ctx context.Context) (err error) {
	if s.key, err = auth.NewKey(); err != nil {
		return err
	}
	limits, err := filepath.Abs("thresholds.json") // traffic uses few cards, and each of them far faster than people do
	if err != nil {
		return err
	}
	jwks := filepath.Join(s.dir, "jwks.json")
	if err := os.WriteFile(jwks, s.key.JWKS(), 0o600); err != nil {
		return err
	}
	for _, name := range append(shop.Names(), shoptest.Provider, gateway) {
		port, err := freePort(ctx)
		if err != nil {
			return err
		}
		s.add(name, name, port)
	}
	s.env = append(s.env, "PATH="+os.Getenv("PATH"), "HOME="+os.Getenv("HOME"),
		"FEIRA_KAFKA="+strings.Join(s.brokers, ","), "FEIRA_JWKS="+jwks, "FEIRA_WHO=e2e", "FEIRA_LOG_FORMAT=json",
		"FEIRA_HOLD="+hold, "FEIRA_FRAUD_THRESHOLDS="+limits, "FEIRA_WINDOW="+shoptest.Windows.Window.String(), "FEIRA_RATE=0", "FEIRA_DEADLINE="+deadline, "FEIRA_MAX_CONNS=6",
		"FEIRA_PROVIDER_KEY="+rand.Text(), "FEIRA_PROVIDER_URL=http://"+s.parts[shoptest.Provider].address)
	for _, p := range s.parts {
		p.env = s.env
	}
	return nil
}

// add declares a process that runs a part of the shop.
func (s *stack) add(name, runs string, port int) *part {
	p := &part{
		name: name, address: net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), binary: s.binary, env: s.env,
		logFile: filepath.Join(s.logs, name+".log"),
	}
	p.args = []string{"run", runs, "--listen=" + p.address, "--member=" + name}
	if runs != gateway && runs != shoptest.Provider {
		p.args = append(p.args, "--behind-gateway")
	}
	s.parts[name] = p
	return p
}

// startShop starts every process and waits until each is ready.
func (s *stack) startShop(ctx context.Context) error {
	var upstreams []string
	for _, d := range shop.Services(shop.Config{}) {
		if d.Routes != nil {
			upstreams = append(upstreams, d.Name+"="+s.parts[d.Name].address)
		}
	}
	front := s.parts[gateway]
	front.args = append(front.args, "--upstreams="+strings.Join(upstreams, ","))
	for _, p := range s.parts {
		if err := p.start(); err != nil {
			return err
		}
	}
	if err := s.shopReady(ctx); err != nil {
		return err
	}
	var err error
	s.shop, err = shoptest.Connect(ctx, s.remote())
	return err
}

// remote is where the shop is, for its customers and for those who look into its books.
func (s *stack) remote() shoptest.Remote {
	return shoptest.Remote{
		URL: "http://" + s.parts[gateway].address, Kafka: kafka.Config{Brokers: s.brokers, ClientID: "e2e"}, DSN: s.dsn, Key: s.key,
	}
}

// shopReady waits until every process says that it is well.
func (s *stack) shopReady(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	for _, p := range s.parts {
		g.Go(func() error { return p.ready(ctx) })
	}
	return g.Wait()
}

func (s *stack) dsn(service string) (string, error) {
	for _, variable := range s.env {
		if dsn, ok := strings.CutPrefix(variable, postgresOf(service)+"="); ok {
			return dsn, nil
		}
	}
	return "", fmt.Errorf("no database of %s", service)
}

// feira runs one of the program's commands to its end and gives what it printed.
func (s *stack) feira(ctx context.Context, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, commands)
	defer cancel()
	cmd := exec.CommandContext(ctx, s.binary, args...)
	var out, said bytes.Buffer
	cmd.Env, cmd.Stdout, cmd.Stderr = s.env, &out, &said
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("feira %s: %w\n%s%s", strings.Join(args, " "), errors.Join(err, ctx.Err()), &out, &said)
	}
	return out.String(), nil
}

// names of the services, in a fixed order.
func (s *stack) names() []string { return slices.Sorted(maps.Keys(s.parts)) }
