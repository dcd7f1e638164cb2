package web

import (
	"bytes"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"github.com/feira-shop/feira/api"
	"github.com/feira-shop/feira/shared/auth"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const order = "/v1/orders/6b1f6c3e-58a5-5c07-9d1c-3a8f0f6f2f10"

// bed is a router over the shop's description, with a handler of the test's own behind it.
type bed struct {
	handler http.Handler
	key     *auth.Key
	log     *bytes.Buffer
	metrics *prometheus.Registry
	tokens  map[auth.Role]string
}

func newBed(tb testing.TB, h http.Handler, change func(*Options)) *bed {
	tb.Helper()
	key, err := auth.NewKey()
	if err != nil {
		tb.Fatal(err)
	}
	verifier, err := auth.StaticVerifier(key.JWKS(), auth.Options{})
	if err != nil {
		tb.Fatal(err)
	}
	spec, err := api.Spec()
	if err != nil {
		tb.Fatal(err)
	}
	b := &bed{key: key, log: &bytes.Buffer{}, metrics: prometheus.NewRegistry(), tokens: map[auth.Role]string{}}
	o := Options{Name: "test", Spec: spec, Auth: verifier, Log: slog.New(slog.NewJSONHandler(b.log, nil)), Metrics: b.metrics}
	if change != nil {
		change(&o)
	}
	r, err := New(o)
	if err != nil {
		tb.Fatal(err)
	}
	r.Mount("/", h)
	b.handler = r
	for _, role := range []auth.Role{auth.Customer, auth.Operator} {
		if b.tokens[role], err = key.Sign("ana", []auth.Role{role}, time.Hour); err != nil {
			tb.Fatal(err)
		}
	}
	return b
}

// call makes a request of a signed-in customer. Headers are "Name: value"; an empty value takes one away.
func (b *bed) call(method, path, body string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	if body == "" {
		r.Body = http.NoBody
	}
	r.Header.Set("Authorization", "Bearer "+b.tokens[auth.Customer])
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Idempotency-Key", "k1")
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		r.Header.Del(name)
		if value != "" {
			r.Header.Set(name, value)
		}
	}
	w := httptest.NewRecorder()
	b.handler.ServeHTTP(w, r)
	return w
}

// problem checks that an answer is a well-formed problem+json of the status and returns it.
func problem(t *testing.T, w *httptest.ResponseRecorder, status int) Problem {
	t.Helper()
	var p Problem
	if w.Code != status {
		t.Fatalf("status %d instead of %d: %s", w.Code, status, w.Body)
	}
	if ct := w.Header().Get("Content-Type"); ct != "application/problem+json" {
		t.Errorf("content type %q", ct)
	}
	if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil {
		t.Fatalf("%v: %s", err, w.Body)
	}
	if p.Status != status || p.Title != http.StatusText(status) || p.Type != "about:blank" || p.Code == "" || p.Detail == "" {
		t.Errorf("incomplete problem %+v", p)
	}
	if p.RequestID == "" || p.RequestID != w.Header().Get("X-Request-Id") {
		t.Errorf("request id %q in the problem, %q in the header", p.RequestID, w.Header().Get("X-Request-Id"))
	}
	return p
}

// echo answers with the body it got.
var echo = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(w, r.Body) })

// checkout is a good body, with one part of it replaced.
func checkout(replacements ...string) string {
	return strings.NewReplacer(replacements...).Replace(`{"lines":[{"sku":"CAFE-500","quantity":2}],"payment":{"method":"card","token":"tok_visa_ana1"},"shipping_address":{"name":"Ana Souza","street":"Rua das Flores, 10","city":"São Paulo","postal_code":"01310-100","country":"BR"},"email":"ana@example.com"}`)
}

func never(t *testing.T) http.Handler {
	t.Helper()
	return http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("%s %s reached the handler", r.Method, r.URL)
	})
}
