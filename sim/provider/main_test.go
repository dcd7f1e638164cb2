package provider

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
	"time"

	"github.com/feira-shop/feira/shared/pg/pgtest"
)

const testKey = "sk_test"

// TestMain is also the provider that the kill tests run as a process of its own.
func TestMain(m *testing.M) {
	if dsn := os.Getenv(childEnv); dsn != "" {
		os.Exit(child(dsn))
	}
	pgtest.Main(m)
}

// client speaks to a provider as payments does.
type client struct {
	base string
	http *http.Client
}

// answer is what came back.
type answer struct {
	status   int
	replayed bool
	body     string
	fields   struct {
		ID            string `json:"id"`
		Status        any    `json:"status"` // a word in resources, a number in problems
		DeclineCode   string `json:"decline_code"`
		Code          string `json:"code"`
		Param         string `json:"param"`
		Card          Card   `json:"card"`
		Amount        int64  `json:"amount"`
		Captured      int64  `json:"captured"`
		Disputed      bool   `json:"disputed"`
		RefundedSoFar int64  `json:"refunded_so_far"`
	}
}

func (c client) send(method, path, key, body string) (answer, error) {
	req, err := http.NewRequest(method, c.base+path, bytes.NewBufferString(body))
	if err != nil {
		return answer{}, err
	}
	req.Header.Set("Authorization", "Bearer "+testKey)
	req.Header.Set("Content-Type", "application/json")
	if key != "" {
		req.Header.Set("Idempotency-Key", key)
	}
	res, err := c.http.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		return answer{}, err
	}
	out := answer{status: res.StatusCode, replayed: res.Header.Get("Idempotent-Replayed") == "true", body: string(text)}
	_ = json.Unmarshal(text, &out.fields) // tests look at the text too
	return out, nil
}

func (c client) post(t *testing.T, path, key, body string) answer {
	t.Helper()
	out, err := c.send(http.MethodPost, path, key, body)
	if err != nil {
		t.Fatalf("POST %s: %v", path, err)
	}
	return out
}

func (c client) get(t *testing.T, path string) answer {
	t.Helper()
	out, err := c.send(http.MethodGet, path, "", "")
	if err != nil {
		t.Fatalf("GET %s: %v", path, err)
	}
	return out
}

func authorization(token, amount string) string {
	return `{"amount":` + amount + `,"currency":"BRL","token":"` + token + `","reference":"order-1"}`
}

func (a answer) want(t *testing.T, status int, word string) answer {
	t.Helper()
	got, _ := a.fields.Status.(string)
	if status >= 400 {
		got = a.fields.Code
	}
	if a.status != status || got != word {
		t.Fatalf("got %d %q, want %d %q; body: %s", a.status, got, status, word, a.body)
	}
	return a
}

// start runs a provider on a database of its own.
func start(t *testing.T, change func(*Options)) (client, *pgtest.DB) {
	t.Helper()
	db := pgtest.New(t, Migrations())
	o := Options{Pool: db.Pool, Key: testKey, Delay: time.Minute}
	if change != nil {
		change(&o)
	}
	s := New(o)
	server := httptest.NewServer(s.Handler())
	t.Cleanup(func() {
		s.Close()
		server.Close()
	})
	return client{server.URL, server.Client()}, db
}

// consistent demands that every authorisation is the sum of its entries.
func consistent(t *testing.T, db *pgtest.DB) {
	t.Helper()
	var wrong int
	err := db.Pool.QueryRow(t.Context(), `
		select count(*) from authorizations a
		left join lateral (
		  select coalesce(sum(amount) filter (where kind = 'authorize'), 0) authorized,
		         coalesce(sum(amount) filter (where kind = 'capture'), 0) captured,
		         coalesce(sum(amount) filter (where kind = 'refund'), 0) refunded,
		         count(*) filter (where kind = 'void') voids
		  from entries where authorization_id = a.id) e on true
		where e.captured <> a.captured or e.refunded <> a.refunded
		   or e.voids <> (a.status = 'voided')::int
		   or e.authorized <> case a.status when 'declined' then 0 else a.amount end`).Scan(&wrong)
	if err != nil || wrong != 0 {
		t.Errorf("%d authorisations differ from the sum of their entries (%v)", wrong, err)
	}
}

func count(t *testing.T, db *pgtest.DB, query string, args ...any) (n int) {
	t.Helper()
	if err := db.Pool.QueryRow(t.Context(), query, args...).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}
