//go:build e2e

package e2e

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/moby/moby/client"
	"golang.org/x/sync/errgroup"

	"github.com/feira-shop/feira/internal/shoptest"
	"github.com/feira-shop/feira/shared/auth"
	"github.com/feira-shop/feira/shared/faulttest"
)

// stack is all that the tests share: Kafka, Postgres and the shop's processes. What a test stops, it starts again.
type stack struct {
	settings
	run     string // names what is ours
	dir     string // everything that is written
	janitor *janitor
	docker  *client.Client // nil: nothing is in a container

	kafkaOn, postgresOn machine            // nil: somebody else's, which is not to be broken
	network             *faulttest.Network // before Kafka; nil: there is none to be cut
	brokers             []string
	admin               string
	versions            []string // lines for the log

	env   []string // of every process of the shop
	key   *auth.Key
	parts map[string]*part
	shop  *shoptest.Shop

	notRun []string // tests that cannot run here
}

// newStack starts everything. After an error, too, what it returns must be closed.
func newStack(ctx context.Context) (*stack, error) {
	name := make([]byte, 4)
	_, _ = rand.Read(name) // never fails
	s := &stack{settings: readSettings(), run: hex.EncodeToString(name), parts: map[string]*part{}}
	if err := s.prepare(ctx); err != nil {
		return s, err
	}
	g, inner := errgroup.WithContext(ctx)
	g.Go(func() error { return s.startKafka(inner) })
	g.Go(func() error { return s.startPostgres(inner) })
	g.Go(func() error { return s.build(inner) })
	if err := g.Wait(); err != nil {
		return s, err
	}
	if err := s.configure(ctx); err != nil {
		return s, err
	}
	if _, err := s.feira(ctx, "migrate", "all", "provider"); err != nil {
		return s, err
	}
	return s, s.startShop(ctx)
}

// prepare connects to Docker, where it is needed, makes the folder, and hires the janitor before there is anything to
// clean.
func (s *stack) prepare(ctx context.Context) (err error) {
	if s.needsDocker() {
		if s.docker, err = connectDocker(ctx); err != nil {
			return err
		}
	}
	// Not below a folder that is closed to others: where the tests run as root, Postgres' account must enter.
	if s.dir, err = os.MkdirTemp("", "feira-e2e-"); err != nil {
		return err
	}
	if err = os.Chmod(s.dir, 0o755); err != nil {
		return err
	}
	if s.logs == "" {
		s.logs = filepath.Join(s.dir, "logs")
	}
	if err = os.MkdirAll(s.logs, 0o750); err != nil {
		return err
	}
	if len(s.givenKafka) > 0 {
		if err = unused(ctx, s.givenKafka); err != nil {
			return err // before a janitor could delete what is somebody else's
		}
	}
	s.janitor, err = startJanitor(s.run, s.dir)
	return err
}

// close ends the shop and has everything removed.
func (s *stack) close() error {
	var wrong []error
	if s.shop != nil {
		s.shop.Close()
	}
	for _, p := range s.parts {
		wrong = append(wrong, p.kill())
	}
	if s.network != nil {
		s.network.Close()
	}
	if s.janitor != nil {
		wrong = append(wrong, s.janitor.clean())
	}
	return errors.Join(wrong...)
}

// embeddedOn starts a machine that is a process of this very program, with its data under a name.
func (s *stack) embeddedOn(ctx context.Context, role string, port int, name string) (*embeddedMachine, error) {
	log, err := os.Create(filepath.Join(s.logs, name+".log"))
	if err != nil {
		return nil, err
	}
	m := &embeddedMachine{role: role, dir: filepath.Join(s.dir, name), port: port, log: log}
	if err := m.Start(ctx); err != nil {
		return nil, err
	}
	return m, nil
}

// tell adds a line to what the log says about versions.
func (s *stack) tell(format string, args ...any) {
	s.versions = append(s.versions, fmt.Sprintf(format, args...))
}
