package demo

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
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
	postgres    *pg.Server
	kafka       *kafka.Embedded
	key         *auth.Key
	jwks        string // file
	providerKey string
}

// startInfra starts what the services stand on, in dir; without one, in a temporary folder.
func startInfra(ctx context.Context, o Options) (_ *infra, err error) {
	in := &infra{dir: o.Data}
	if in.dir == "" {
		in.temporary = true
		if in.dir, err = os.MkdirTemp("", "feira-demo-"); err != nil {
			return nil, fmt.Errorf("make a folder for the demo: %w", err)
		}
	}
	if in.dir, err = filepath.Abs(in.dir); err != nil {
		return nil, fmt.Errorf("find the folder %s: %w", in.dir, err)
	}
	// Postgres refuses to run as root, so its own user must be able to enter; the secrets inside are 0600.
	if err := os.MkdirAll(in.dir, 0o755); err != nil { //nolint:gosec // see above
		return nil, fmt.Errorf("make the folder %s: %w", in.dir, err)
	}
	if in.temporary {
		if err := os.Chmod(in.dir, 0o755); err != nil { //nolint:gosec // see above
			return nil, fmt.Errorf("open the folder %s: %w", in.dir, err)
		}
	}
	defer func() {
		if err != nil {
			in.stop()
		}
	}()
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() (err error) {
		in.postgres, err = pg.Start(ctx, pg.Options{
			Dir: filepath.Join(in.dir, "postgres"), Temporary: in.temporary, Progress: o.Out,
		})
		return err
	})
	g.Go(func() (err error) {
		in.kafka, err = kafka.StartEmbedded(ctx, kafka.EmbeddedOptions{Listen: o.KafkaListen, Dir: filepath.Join(in.dir, "kafka")})
		return err
	})
	g.Go(in.secrets)
	return in, g.Wait()
}

// secrets reads or makes the key that signs tokens and the one the provider knows the shop by.
func (in *infra) secrets() (err error) {
	dir := filepath.Join(in.dir, "keys")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("make the folder of keys: %w", err)
	}
	if in.key, err = auth.LoadOrCreateKey(filepath.Join(dir, "token.pem")); err != nil {
		return err
	}
	in.jwks = filepath.Join(dir, "jwks.json")
	if err := os.WriteFile(in.jwks, in.key.JWKS(), 0o600); err != nil {
		return fmt.Errorf("write the key set: %w", err)
	}
	path := filepath.Join(dir, "provider.key")
	known, err := os.ReadFile(path) //nolint:gosec // the demo's own folder
	if errors.Is(err, os.ErrNotExist) {
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

// environment writes a file that tells other processes (feira run, admin, verify) where everything is.
func (in *infra) environment(services []service.Definition, shop, provider string) (string, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "FEIRA_URL=%s\nFEIRA_KAFKA=%s\n", shop, strings.Join(in.kafka.Brokers(), ","))
	for _, d := range services {
		fmt.Fprintf(&b, "FEIRA_POSTGRES_%s=%s\n", strings.ToUpper(d.Name), in.postgres.DSN(d.Name))
	}
	fmt.Fprintf(&b, "FEIRA_POSTGRES_PROVIDER=%s\n", in.postgres.DSN(providerDatabase))
	fmt.Fprintf(&b, "FEIRA_PROVIDER_URL=%s\nFEIRA_PROVIDER_KEY=%s\n", provider, in.providerKey)
	fmt.Fprintf(&b, "FEIRA_JWKS=%s\nFEIRA_TOKEN_KEY=%s\n", in.jwks, filepath.Join(in.dir, "keys", "token.pem"))
	path := filepath.Join(in.dir, "feira.env")
	if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
		return "", fmt.Errorf("write the addresses: %w", err)
	}
	return path, nil
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
}
