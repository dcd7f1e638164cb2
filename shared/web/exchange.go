package web

import (
	"context"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// exchange is what the layers know of one request. One context value keeps the chain cheap.
type exchange struct {
	id      string
	op      *operation        // nil: not in the description
	params  map[string]string // of the path, unescaped
	streams bool
	waited  time.Duration // because the client wanted it to, see [Waiting]
}

type exchangeKey struct{}

func exchangeOf(ctx context.Context) *exchange {
	x, _ := ctx.Value(exchangeKey{}).(*exchange)
	return x
}

// RequestID names the request; it is in the answer's X-Request-Id, in problems and in the log. "" outside of a
// request.
func RequestID(ctx context.Context) string {
	if x := exchangeOf(ctx); x != nil {
		return x.id
	}
	return ""
}

// WantsEvents reports whether the operation offers an event stream and the client asked for it.
func WantsEvents(ctx context.Context) bool {
	x := exchangeOf(ctx)
	return x != nil && x.streams
}

// Waiting says that the handler now waits because the client asked for it (Prefer: wait), until done is called. This
// time is no part of feira_http_request_duration_seconds: long polls do not make a shop look slow.
func Waiting(ctx context.Context) (done func()) {
	x := exchangeOf(ctx)
	if x == nil {
		return func() {}
	}
	begin := time.Now()
	return func() { x.waited += time.Since(begin) }
}

// requestID takes the client's (or the gateway's) id when it is harmless in a log, else makes one.
func requestID(r *http.Request) string {
	id := r.Header.Get("X-Request-Id")
	if len(id) == 0 || len(id) > 64 || strings.Trim(id, "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ._-") != "" {
		return strconv.FormatUint(rand.Uint64()|1<<63, 16) //nolint:gosec // a name, not a secret
	}
	return id
}

// prefersEvents reads Accept: the first type that we have decides.
func prefersEvents(r *http.Request) bool {
	for _, value := range r.Header.Values("Accept") {
		for t := range strings.SplitSeq(value, ",") {
			t, _, _ = strings.Cut(t, ";")
			switch strings.ToLower(strings.TrimSpace(t)) {
			case "text/event-stream":
				return true
			case "application/json", "*/*", "application/*":
				return false
			}
		}
	}
	return false
}

// Identify names requests before they reach a router made by [New], which takes the name over: for a gateway in
// front of several routers, in this process or others.
func Identify(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		x := &exchange{id: requestID(r)}
		r = r.WithContext(context.WithValue(r.Context(), exchangeKey{}, x))
		r.Header.Set("X-Request-Id", x.id)
		w.Header().Set("X-Request-Id", x.id)
		next.ServeHTTP(w, r)
	})
}
