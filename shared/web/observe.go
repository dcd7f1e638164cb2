package web

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/go-chi/chi/v5/middleware"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/feira-shop/feira/shared/telemetry"
)

func newHistogram(r prometheus.Registerer) (*prometheus.HistogramVec, error) {
	h := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "feira_http_request_duration_seconds",
		Help:    "Time to answer a request, without what the client asked it to wait; event streams are not counted.",
		Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10},
	}, []string{"route", "method", "code"})
	if r == nil {
		return h, nil
	}
	if err := r.Register(h); err != nil {
		var already prometheus.AlreadyRegisteredError
		if errors.As(err, &already) {
			if existing, ok := already.ExistingCollector.(*prometheus.HistogramVec); ok {
				return existing, nil // a second router of the same service
			}
		}
		return nil, fmt.Errorf("web: register metrics: %w", err)
	}
	return h, nil
}

// observe names the request, finds its operation, and says afterwards what became of it.
func (l *layers) observe(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		begin := time.Now()
		x := &exchange{id: requestID(r)}
		var allowed []string
		if x.op, x.params, allowed = l.ops.find(r); x.op != nil {
			x.streams = x.op.streams && prefersEvents(r)
		}
		h := w.Header()
		h.Set("X-Request-Id", x.id)
		h.Set("X-Content-Type-Options", "nosniff")
		if len(allowed) > 0 {
			h.Set("Allow", allowHeader(allowed))
		}
		seen := middleware.NewWrapResponseWriter(w, r.ProtoMajor)
		// Where spans are made there is one already; else the client's place in a trace goes on to the events.
		ctx := telemetry.WithStory(telemetry.Continue(r.Context(), r.Header.Get("Traceparent")))
		r = r.WithContext(context.WithValue(ctx, exchangeKey{}, x))
		defer l.observed(r, x, seen, begin) // also when a panic ends the connection
		next.ServeHTTP(seen, r)
	})
}

func (l *layers) observed(r *http.Request, x *exchange, w middleware.WrapResponseWriter, begin time.Time) {
	took, status, route := time.Since(begin), w.Status(), "unmatched"
	if status == 0 {
		status = http.StatusOK // net/http sends it for a handler that wrote nothing
	}
	if x.op != nil {
		route = x.op.pattern
	}
	if !x.streams {
		l.hist.WithLabelValues(route, methodLabel(r.Method), strconv.Itoa(status)).Observe((took - x.waited).Seconds())
	}
	level := slog.LevelInfo
	if status >= http.StatusInternalServerError {
		level = slog.LevelWarn
	}
	l.Log.LogAttrs(r.Context(), level, "request",
		slog.String("method", methodLabel(r.Method)), slog.String("route", route), slog.Int("status", status),
		slog.Float64("duration_ms", float64(took.Microseconds())/1000), slog.Int("bytes", w.BytesWritten()),
		slog.String("request_id", x.id))
}

// pattern is the path of a request as the description has it; "" if it has none.
func (l *layers) pattern(r *http.Request) string {
	if op, _, _ := l.ops.find(r); op != nil {
		return op.pattern
	}
	return ""
}

// recover turns a panic into a 500. An answer that has begun is broken off instead, so that nobody takes it for
// complete.
func (l *layers) recover(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			if p := recover(); p != nil {
				l.panicked(w, r, p)
			}
		}()
		next.ServeHTTP(w, r)
	})
}

func (l *layers) panicked(w http.ResponseWriter, r *http.Request, p any) {
	if err, ok := p.(error); ok && errors.Is(err, http.ErrAbortHandler) {
		panic(p) // the documented way to break off an answer
	}
	l.Log.ErrorContext(r.Context(), "panic in a handler", "request_id", RequestID(r.Context()), "panic", p, "stack", string(debug.Stack()))
	if started(w) {
		panic(http.ErrAbortHandler)
	}
	fail(l.Log, w, r, &Error{Kind: Internal, Cause: fmt.Errorf("panic: %v", p)})
}

// known answers what the description does not have.
func (l *layers) known(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if exchangeOf(r.Context()).op != nil {
			next.ServeHTTP(w, r)
			return
		}
		kind := NotFound
		if w.Header().Get("Allow") != "" {
			kind = MethodNotAllowed
		}
		fail(l.Log, w, r, &Error{Kind: kind})
	})
}
