package orders_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/feira-shop/feira/api"
	"github.com/feira-shop/feira/services/orders"
	"github.com/feira-shop/feira/shared/auth"
	"github.com/feira-shop/feira/shared/eventstore"
	"github.com/feira-shop/feira/shared/pg"
	"github.com/feira-shop/feira/shared/pg/pgtest"
	"github.com/feira-shop/feira/shared/service"
	"github.com/feira-shop/feira/shared/web"
)

const (
	benchClients = 16
	benchRound   = 2000 // checkouts per measured round
)

// BenchmarkCheckout measures a durable checkout over HTTP, with and without group commit: 16 clients, fsync on, rounds
// in turn. CPU is that of this process, clients included, and of all of Postgres.
func BenchmarkCheckout(b *testing.B) {
	dir, err := os.MkdirTemp("", "orders-bench-") // on a disk, and open to the user that Postgres runs as
	must(b, err)
	must(b, os.Chmod(dir, 0o755))
	b.Cleanup(func() { _ = os.RemoveAll(dir) })
	server, err := pg.Start(b.Context(), pg.Options{Dir: dir})
	must(b, err)
	b.Cleanup(func() { must(b, server.Stop()) })
	grouped, single := newShop(b, server, "grouped", 0), newShop(b, server, "single", 1)
	grouped.round(b, 200)
	single.round(b, 200)
	var on, off []float64
	for b.Loop() {
		on, off = append(on, grouped.round(b, benchRound)), append(off, single.round(b, benchRound))
	}
	b.ReportMetric(median(on), "cpu-µs/checkout")
	b.ReportMetric(median(off), "single-cpu-µs/checkout")
	b.ReportMetric(median(off)/median(on), "cpu-ratio")
}

// shop is the HTTP side of orders on a store of its own.
type shop struct {
	pool   *pgxpool.Pool
	url    string
	token  string
	client *http.Client
	orders atomic.Int64
}

func newShop(b *testing.B, server *pg.Server, name string, maxFlush int) *shop {
	b.Helper()
	must(b, server.CreateDatabase(b.Context(), name))
	d := orders.Service(orders.Config{})
	must(b, d.Migrate(b.Context(), server.DSN(name)))
	pool, err := pg.Open(b.Context(), server.DSN(name), pg.PoolOptions{Name: name, MaxConns: 8})
	must(b, err)
	b.Cleanup(pool.Close)
	_, err = pool.Exec(b.Context(), `insert into products values ('CAFE', 'Café', 3290, 'BRL', true)`)
	must(b, err)
	store := eventstore.New(pool, eventstore.Options{Service: "orders", Registry: d.Registry(), MaxFlush: maxFlush})
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = store.Run(ctx) })
	b.Cleanup(func() { cancel(); running.Wait() })

	key, err := auth.NewKey()
	must(b, err)
	verifier, err := auth.StaticVerifier(key.JWKS(), auth.Options{})
	must(b, err)
	spec, err := api.Spec()
	must(b, err)
	router, err := web.New(web.Options{Name: "orders", Spec: spec, Tags: []string{"orders"}, Auth: verifier})
	must(b, err)
	d.Routes(service.Runtime{Store: store}, router)
	listener := httptest.NewServer(router)
	b.Cleanup(listener.Close)
	token, err := key.Sign("ana", []auth.Role{auth.Customer}, time.Hour)
	must(b, err)
	transport := &http.Transport{MaxIdleConnsPerHost: benchClients}
	b.Cleanup(transport.CloseIdleConnections)
	return &shop{pool: pool, url: listener.URL, token: token, client: &http.Client{Transport: transport}}
}

// round places n orders and returns CPU-µs per order.
func (s *shop) round(b *testing.B, n int) float64 {
	b.Helper()
	ownBefore, serverBefore := pgtest.CPU(b, s.pool)
	var left atomic.Int64
	left.Store(int64(n))
	var clients sync.WaitGroup
	for range benchClients {
		clients.Go(func() {
			for left.Add(-1) >= 0 {
				if err := s.checkout(s.orders.Add(1)); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	clients.Wait()
	own, server := pgtest.CPU(b, s.pool)
	return float64((own - ownBefore + server - serverBefore).Microseconds()) / float64(n)
}

var body = []byte(`{"lines":[{"sku":"CAFE","quantity":2}],"payment":{"method":"card","token":"tok_visa_1"},"email":"ana@example.com",
"shipping_address":{"name":"Ana","street":"Rua das Flores, 10","city":"Olinda","postal_code":"53020-100","country":"BR"}}`)

func (s *shop) checkout(n int64) error {
	r, err := http.NewRequest(http.MethodPost, s.url+"/v1/orders", bytes.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("Authorization", "Bearer "+s.token)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Idempotency-Key", fmt.Sprint(n))
	answer, err := s.client.Do(r)
	if err != nil {
		return err
	}
	said, err := io.ReadAll(answer.Body)
	if answer.StatusCode != http.StatusCreated {
		return fmt.Errorf("%s: %s", answer.Status, said)
	}
	_ = answer.Body.Close()
	return err
}

func median(values []float64) float64 {
	slices.Sort(values)
	return values[len(values)/2]
}

func must(b *testing.B, err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}
