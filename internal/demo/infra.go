package demo

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/feira-shop/feira/shared/auth"
	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/kafka"
	"github.com/feira-shop/feira/shared/pg"
	"github.com/feira-shop/feira/shared/service"
)

// providerDatabase is the payment provider's own.
const providerDatabase = "provider"

// infra is the embedded Kafka and Postgres and the secrets that the demo makes for itself.
type infra struct {
	dir         string
	temporary   bool
	lock        *os.File          // of a temporary folder
	before      map[string]string // the environment of the run before
	postgres    *pg.Server
	kafka       *kafka.Embedded
	key         *auth.Key
	jwks        string // file
	providerKey string
}

// startInfra starts what the services stand on, in the folder of data; without one, in a temporary folder.
func startInfra(ctx context.Context, o Options) (_ *infra, err error) {
	in := &infra{dir: o.Data}
	if err := in.folder(); err != nil {
		return nil, &folderError{in.dir, err}
	}
	defer func() {
		if err != nil {
			in.stop()
		}
	}()
	in.before = readEnvironment(in.path(environmentFile))
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return in.startPostgres(ctx, o) })
	g.Go(func() (err error) {
		in.kafka, err = kafka.StartEmbedded(ctx, kafka.EmbeddedOptions{Listen: o.KafkaListen, Dir: in.path("kafka")})
		return err
	})
	g.Go(in.secrets)
	return in, g.Wait()
}

// folder makes the folder. Postgres refuses to run as root, so its own user must be able to enter; the secrets inside
// are 0600.
func (in *infra) folder() (err error) {
	if in.dir == "" {
		in.temporary = true
		removeLeftovers(os.TempDir())
		if in.dir, err = os.MkdirTemp("", temporaryPattern); err != nil {
			return err
		}
		if in.lock, err = lock(in.dir); err != nil {
			return err
		}
		return os.Chmod(in.dir, 0o755) //nolint:gosec // see above
	}
	if in.dir, err = filepath.Abs(in.dir); err != nil {
		return err
	}
	info, err := os.Stat(in.dir)
	if err == nil && !info.IsDir() {
		return errors.New("it is a file")
	}
	return os.MkdirAll(in.dir, 0o755) //nolint:gosec // see above
}

// startPostgres takes the port of the run before, if it is free, so that other processes find the databases again.
func (in *infra) startPostgres(ctx context.Context, o Options) (err error) {
	opts := pg.Options{Dir: in.path("postgres"), Temporary: in.temporary, Progress: o.Out, Port: portOf(in.before["FEIRA_POSTGRES_PROVIDER"])}
	in.postgres, err = pg.Start(ctx, opts)
	var busy *pg.PortBusyError
	if opts.Port != 0 && errors.As(err, &busy) {
		opts.Port = 0
		in.postgres, err = pg.Start(ctx, opts)
	}
	return err
}

// listenAgain opens the port that an address had in the run before, else any.
func (in *infra) listenAgain(ctx context.Context, name string) (net.Listener, error) {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", fmt.Sprintf("127.0.0.1:%d", portOf(in.before[name])))
	if err != nil {
		l, err = lc.Listen(ctx, "tcp", "127.0.0.1:0")
	}
	return l, err
}

// secrets reads or makes the key that signs tokens and the one the provider knows the shop by.
func (in *infra) secrets() (err error) {
	dir := in.path("keys")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("make the folder of keys: %w", err)
	}
	if in.key, err = auth.LoadOrCreateKey(in.path("keys", "token.pem")); err != nil {
		return err
	}
	in.jwks = in.path("keys", "jwks.json")
	if err := os.WriteFile(in.jwks, in.key.JWKS(), 0o600); err != nil {
		return fmt.Errorf("write the key set: %w", err)
	}
	path := in.path("keys", "provider.key")
	known, err := os.ReadFile(path) //nolint:gosec // the demo's own folder
	if errors.Is(err, os.ErrNotExist) || err == nil && len(known) == 0 {
		known = []byte(rand.Text())
		err = os.WriteFile(path, known, 0o600)
	}
	in.providerKey = strings.TrimSpace(string(known))
	return err
}

// prepare makes the databases, brings them up to date, and makes the topics.
func (in *infra) prepare(ctx context.Context, services []service.Definition) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(4)
	for _, d := range services {
		g.Go(func() error {
			if err := in.postgres.CreateDatabase(ctx, d.Name); err != nil {
				return err
			}
			return d.Migrate(ctx, in.postgres.DSN(d.Name))
		})
	}
	g.Go(func() error {
		return kafka.EnsureTopics(ctx, in.kafka.Config("feira"), events.Topics(), kafka.EnsureOptions{})
	})
	return g.Wait()
}

// stop ends what was started; a temporary folder goes with it.
func (in *infra) stop() {
	if in.kafka != nil {
		in.kafka.Close()
	}
	if in.postgres != nil {
		_ = in.postgres.Stop() // it ends with this process anyway
	}
	if in.temporary {
		_ = os.RemoveAll(in.dir)
	}
	if in.lock != nil {
		_ = in.lock.Close()
	}
}
