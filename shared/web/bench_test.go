package web

import (
	"bytes"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/feira-shop/feira/shared/auth"
)

// sink is a response writer that keeps nothing.
type sink struct{ h http.Header }

func (s *sink) Header() http.Header         { return s.h }
func (s *sink) Write(p []byte) (int, error) { return len(p), nil }
func (s *sink) WriteHeader(int)             {}

// BenchmarkLayers is what a checkout costs before its handler: all layers, with an access log and a rate limit.
// "bare" is the same request without them.
func BenchmarkLayers(b *testing.B) {
	ok := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusCreated) })
	bed := newBed(b, ok, func(o *Options) {
		o.Log = slog.New(slog.NewJSONHandler(io.Discard, nil))
		o.Rate = RateLimit{Requests: 1 << 30, Window: time.Minute}
	})
	body := []byte(checkout())
	for name, c := range map[string]struct {
		h                   http.Handler
		method, path, token string
		body                []byte
	}{
		"bare":     {ok, http.MethodPost, "/v1/orders", bed.tokens[auth.Customer], body},
		"checkout": {bed.handler, http.MethodPost, "/v1/orders", bed.tokens[auth.Customer], body},
		"read":     {bed.handler, http.MethodGet, order, bed.tokens[auth.Customer], nil},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				r := httptest.NewRequest(c.method, c.path, bytes.NewReader(c.body))
				r.Header.Set("Authorization", "Bearer "+c.token)
				r.Header.Set("Content-Type", "application/json")
				r.Header.Set("Idempotency-Key", "k1")
				c.h.ServeHTTP(&sink{http.Header{}}, r)
			}
		})
	}
}
