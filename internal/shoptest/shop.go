package shoptest

import (
	"context"
	"crypto/rand"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"

	"github.com/feira-shop/feira/internal/host"
	"github.com/feira-shop/feira/internal/shop"
	"github.com/feira-shop/feira/services/fraud"
	"github.com/feira-shop/feira/shared/auth"
	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/kafka"
	"github.com/feira-shop/feira/shared/kafka/kafkatest"
	"github.com/feira-shop/feira/shared/pg/pgtest"
	"github.com/feira-shop/feira/shared/service"
	"github.com/feira-shop/feira/shared/telemetry"
	"github.com/feira-shop/feira/shared/web"
	"github.com/feira-shop/feira/sim/provider"
)

// Provider names the payment provider's database beside those of the services.
const Provider = "provider"

const (
	// A request to the provider is given up after this long, and a late answer comes later than that.
	providerTimeout = 2 * time.Second
	providerDelay   = 3 * time.Second
	startWithin     = 2 * time.Minute
	stopWithin      = 20 * time.Second
	connections     = 4 // of each service: enough, and several shops fit one server
)

// Options are what a test may choose.
type Options struct {
	Deadline time.Duration      // from placed to confirmed; 0 is 5 minutes
	Hold     time.Duration      // of a suspected duplicate; 0 is 15 minutes
	Tracing  *telemetry.Tracing // nil: none
}

// Shop is a running shop.
type Shop struct {
	URL      string       // of the public API
	Kafka    kafka.Config // of a client of the shop's broker
	Services []service.Definition
	Log      *Log // of everything in the shop, the provider included; nil of one that is [Connect]ed to

	key       *auth.Key
	databases map[string]database
	metrics   *telemetry.Metrics
	tracing   *telemetry.Tracing
	client    *http.Client
	pause     time.Duration // between two looks at all books
	made      atomic.Int64  // customers, cards, products and keys so far
}

// database is one of the shop's, beside which a test looks.
type database struct {
	pool *pgxpool.Pool
	dsn  string
}

// Start starts a shop and returns when it is ready. It is examined and stopped when the test ends.
func Start(tb testing.TB, o Options) *Shop {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), startWithin)
	defer cancel()
	s := &Shop{
		Kafka: kafkatest.New(tb, events.Topics()...).Config("shoptest"), Log: newLog(tb), databases: map[string]database{},
		metrics: telemetry.NewMetrics(), pause: 50 * time.Millisecond, tracing: o.Tracing,
	}
	for _, name := range append(shop.Names(), Provider) {
		db := pgtest.New(tb)
		s.databases[name] = database{db.Pool, db.DSN}
	}
	policies, err := fraud.Open(fraud.Files{}) // and not nil, so that its figures are shown as by feira run
	if err != nil {
		tb.Fatal(err)
	}
	secret := rand.Text()
	s.Services = shop.Services(shop.Config{
		Deadline: o.Deadline, Hold: o.Hold, Analytics: Windows, Fraud: fraud.Config{Policies: policies},
		ProviderURL: s.startProvider(ctx, tb, secret), ProviderKey: secret, ProviderTimeout: providerTimeout,
	})
	s.migrate(ctx, tb)
	s.open(ctx, tb, s.startServices(ctx, tb))
	tb.Cleanup(func() { s.mustBalance(tb) })
	return s
}

// Pool is a connection pool to a service's database, or to that of the [Provider], beside the running shop.
func (s *Shop) Pool(name string) *pgxpool.Pool { return s.databases[name].pool }

// DSN is the address of a service's database, or of that of the [Provider].
func (s *Shop) DSN(name string) (string, error) { return s.databases[name].dsn, nil }

// unique makes a name that nobody else in this shop has.
func (s *Shop) unique(what string) string { return what + strconv.FormatInt(s.made.Add(1), 10) }

func (s *Shop) startProvider(ctx context.Context, tb testing.TB, secret string) (url string) {
	tb.Helper()
	must(tb, "migrate the provider", migrateProvider(ctx, s.databases[Provider].dsn))
	p := provider.New(provider.Options{
		Pool: s.Pool(Provider), Key: secret, Delay: providerDelay, Log: s.Log.Logger(), Metrics: s.metrics.Service(Provider),
		Tracer: s.tracing.Service(Provider),
	})
	server := httptest.NewServer(p.Handler())
	tb.Cleanup(func() { p.Close(); server.Close() })
	return server.URL
}

func (s *Shop) migrate(ctx context.Context, tb testing.TB) {
	tb.Helper()
	var g errgroup.Group
	for _, d := range s.Services {
		g.Go(func() error { return d.Migrate(ctx, s.databases[d.Name].dsn) })
	}
	must(tb, "migrate", g.Wait())
}

func (s *Shop) startServices(ctx context.Context, tb testing.TB) *host.Host {
	tb.Helper()
	var err error
	s.key, err = auth.NewKey()
	must(tb, "make a key", err)
	verifier, err := auth.StaticVerifier(s.key.JWKS(), auth.Options{})
	must(tb, "read the key", err)
	h, err := host.Start(ctx, host.Config{
		Services: s.Services, DSN: s.DSN, Kafka: s.Kafka, Member: "shoptest", MaxConns: connections,
		Auth: verifier, Log: s.Log.Logger(), Metrics: s.metrics, Tracing: s.tracing,
	})
	must(tb, "start the services", err)
	tb.Cleanup(func() {
		limit, cancel := context.WithTimeout(context.Background(), stopWithin)
		defer cancel()
		h.Stop(limit)
	})
	return h
}

// open answers requests on a port of the loopback interface and waits until the shop is ready.
func (s *Shop) open(ctx context.Context, tb testing.TB, h *host.Host) {
	tb.Helper()
	health := web.NewHealth(s.Log.Logger())
	h.AddChecks(health)
	handler, err := host.Front{
		Services: h.Handlers(), Pages: http.NewServeMux(), Health: health, Metrics: s.metrics, Public: true, Log: s.Log.Logger(),
	}.Handler()
	must(tb, "build the API", err)
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	must(tb, "listen", err)
	serve, stop := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- web.ServeListener(serve, listener, handler, slog.New(slog.DiscardHandler)) }()
	s.client = newClient()
	tb.Cleanup(func() {
		s.client.CloseIdleConnections()
		stop()
		if err := <-served; err != nil {
			tb.Errorf("serve the API: %v", err)
		}
	})
	s.URL = "http://" + listener.Addr().String()
	must(tb, "get ready", host.AwaitReady(ctx, health))
}

func newClient() *http.Client {
	return &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}
}

func must(tb testing.TB, what string, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatalf("%s: %v", what, err)
	}
}
