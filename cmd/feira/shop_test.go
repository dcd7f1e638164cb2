package main_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/feira-shop/feira/api"
	"github.com/feira-shop/feira/shared/pg"
)

// running is a demo, with what its feira.env says.
type running struct {
	*process
	dir string
	env map[string]string
}

// file is where the demo's addresses are.
func (r *running) file() string { return filepath.Join(r.dir, "feira.env") }

// startDemo starts a demo on free ports and a folder, and waits until it trades.
func startDemo(t *testing.T, dir string, args ...string) *running {
	t.Helper()
	p := start(t, nil, append([]string{"demo", "--listen=127.0.0.1:0", "--kafka-listen=127.0.0.1:0", "--data=" + dir}, args...)...)
	p.until("A checkout to paste")
	r := &running{process: p, dir: dir, env: map[string]string{}}
	raw, err := os.ReadFile(r.file())
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(raw)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		r.env[name] = value
	}
	return r
}

// feira calls the program with the demo's addresses.
func (r *running) feira(t *testing.T, args ...string) result {
	t.Helper()
	return call(t, nil, append([]string{"--env-file=" + r.file()}, args...)...)
}

// database opens the database of a service.
func (r *running) database(t *testing.T, service string) *pgxpool.Pool {
	t.Helper()
	pool, err := pg.Open(t.Context(), r.env["FEIRA_POSTGRES_"+strings.ToUpper(service)], pg.PoolOptions{Name: "test", MaxConns: 2})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}

// exec runs SQL that must change one row.
func exec1(t *testing.T, pool *pgxpool.Pool, sql string, args ...any) {
	t.Helper()
	tag, err := pool.Exec(t.Context(), sql, args...)
	if err != nil || tag.RowsAffected() != 1 {
		t.Fatalf("%s: %v, %d rows", sql, err, tag.RowsAffected())
	}
}

// one reads one value.
func one[T any](t *testing.T, pool *pgxpool.Pool, sql string, args ...any) T {
	t.Helper()
	var v T
	if err := pool.QueryRow(t.Context(), sql, args...).Scan(&v); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return v
}

// token signs one with the program.
func (r *running) token(t *testing.T, args ...string) string {
	t.Helper()
	return strings.TrimSpace(r.feira(t, append([]string{"token"}, args...)...).ok(t))
}

// answer is what the API said beside its body.
type answer struct {
	StatusCode int
	Status     string
	Header     http.Header
}

// send calls the API and reads the answer into what is given; that may be nil.
func send(t *testing.T, method, url, token, body string, headers map[string]string, into any) answer {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for name, value := range headers {
		req.Header.Set(name, value)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	if into != nil {
		if err := json.Unmarshal(raw, into); err != nil {
			t.Fatalf("%s %s: %d %s", method, url, res.StatusCode, raw)
		}
	}
	return answer{res.StatusCode, res.Status, res.Header}
}

// checkout orders one coffee on a card of its own and waits up to so many seconds for it to be decided.
func checkout(t *testing.T, shop, token, key string, wait int) (api.Order, answer) {
	t.Helper()
	return buy(t, shop, token, key, strings.ReplaceAll(key, "-", "_"), 1, wait)
}

// buy orders so many coffees on a card.
func buy(t *testing.T, shop, token, key, card string, quantity, wait int) (api.Order, answer) {
	t.Helper()
	return place(t, shop, token, key, "tok_visa_"+card, quantity, wait)
}

// place orders so many coffees with a provider's token.
func place(t *testing.T, shop, token, key, payment string, quantity, wait int) (api.Order, answer) {
	t.Helper()
	var o api.Order
	res := send(t, http.MethodPost, shop+"/v1/orders", token, checkoutBody(quantity, payment),
		map[string]string{"Idempotency-Key": key, "Prefer": fmt.Sprintf("wait=%d", wait)}, &o)
	return o, res
}

// checkoutBody orders so many coffees with a provider's token.
func checkoutBody(quantity int, payment string) string {
	return fmt.Sprintf(`{"lines":[{"sku":"CAFE-500G","quantity":%d}],"payment":{"method":"card","token":"%s"},
		"email":"ana@example.com","shipping_address":{"name":"Ana Souza","street":"Rua das Flores, 10","city":"Olinda",
		"state":"PE","postal_code":"53020-100","country":"BR"}}`, quantity, payment)
}

// order reads an order.
func order(t *testing.T, shop, token, id string) api.Order {
	t.Helper()
	var o api.Order
	send(t, http.MethodGet, shop+"/v1/orders/"+id, token, "", nil, &o)
	return o
}
