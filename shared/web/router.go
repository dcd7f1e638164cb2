package web

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/go-chi/chi/v5"
	"github.com/go-chi/cors"
	"github.com/go-chi/httprate"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/feira-shop/feira/shared/auth"
	"github.com/feira-shop/feira/shared/telemetry"
)

// Limits of a request unless configured otherwise.
const (
	DefaultMaxBody = 1 << 20          // bytes
	DefaultTimeout = 15 * time.Second // above the longest wait that a client may ask for
)

// RateLimit bounds the requests of one customer (one address where nobody is signed in) in a sliding window.
type RateLimit struct {
	Requests int // 0: no limit
	Window   time.Duration
}

// Options configure a router.
type Options struct {
	Name    string                // of the service, for messages
	Spec    *openapi3.T           // the description
	Tags    []string              // only the operations of these tags; nil: all
	Auth    *auth.Verifier        // nil only where every operation is open
	Log     *slog.Logger          // nil: discard
	Metrics prometheus.Registerer // nil: none
	Tracer  *telemetry.Tracer     // nil: none
	Rate    RateLimit             // zero: no limit
	Timeout time.Duration         // 0: [DefaultTimeout]
	MaxBody int64                 // bytes; 0: [DefaultMaxBody]
	Origins []string              // web pages that may call from a browser (CORS); nil: only our own
	// Proxied says that a gateway of ours is in front, so the client's address is the last of X-Forwarded-For.
	Proxied bool
}

// validate fills in defaults and collects everything that is wrong.
func (o *Options) validate() error {
	if o.Timeout == 0 {
		o.Timeout = DefaultTimeout
	}
	if o.MaxBody == 0 {
		o.MaxBody = DefaultMaxBody
	}
	o.Log = orDiscard(o.Log)
	var errs []error
	if o.Spec == nil {
		errs = append(errs, errors.New("without a Spec nothing can be validated"))
	}
	if o.Rate.Requests > 0 && o.Rate.Window <= 0 {
		errs = append(errs, errors.New("a Rate needs a positive Window"))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("web: options of %s: %w", o.Name, err)
	}
	return nil
}

type layers struct {
	Options
	ops  *operations
	hist *prometheus.HistogramVec
	rate *httprate.RateLimiter
}

// New makes a router with all layers installed (see the package's description). Mount the service's generated
// handler at "/"; what is not in the description is answered before it.
func New(o Options) (*chi.Mux, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	ops, err := newOperations(o.Spec, o.Tags)
	if err != nil {
		return nil, err
	}
	l := &layers{Options: o, ops: ops}
	if err := l.needsAuth(); err != nil {
		return nil, err
	}
	if l.hist, err = newHistogram(o.Metrics); err != nil {
		return nil, err
	}
	r := chi.NewRouter()
	r.Use(o.Tracer.Serve(l.pattern), l.observe, l.recover)
	if len(o.Origins) > 0 {
		r.Use(corsHandler(o.Origins))
	}
	r.Use(l.known, l.authenticate)
	if o.Rate.Requests > 0 {
		l.rate = httprate.NewRateLimiter(o.Rate.Requests, o.Rate.Window, httprate.WithResponseHeaders(httprate.ResponseHeaders{}))
		r.Use(l.limitRate)
	}
	r.Use(l.deadline, l.validateRequest)
	// The description has the path, but the service has no handler for it.
	r.NotFound(func(w http.ResponseWriter, r *http.Request) { fail(l.Log, w, r, &Error{Kind: NotFound}) })
	return r, nil
}

func (l *layers) needsAuth() error {
	for _, methods := range l.ops.table {
		for _, op := range methods {
			if !op.open && l.Auth == nil {
				return &SpecError{op.route.Operation.OperationID, "needs a token, but " + l.Name + " has no Auth to verify it with"}
			}
		}
	}
	return nil
}

func corsHandler(origins []string) func(http.Handler) http.Handler {
	return cors.Handler(cors.Options{
		AllowedOrigins: origins,
		AllowedMethods: []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete},
		AllowedHeaders: []string{"Authorization", "Content-Type", "Idempotency-Key", "If-Match", "If-None-Match", "Last-Event-ID", "Prefer", "Traceparent", "X-Request-Id"},
		ExposedHeaders: []string{"ETag", "Idempotent-Replayed", "Location", "Preference-Applied", "Retry-After", "X-Request-Id"},
		MaxAge:         600,
	})
}
