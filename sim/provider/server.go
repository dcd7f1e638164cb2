package provider

import (
	"context"
	"crypto/subtle"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/feira-shop/feira/shared/telemetry"
)

// DefaultDelay is longer than a client waits for one attempt.
const DefaultDelay = 15 * time.Second

// Options say what a provider runs on.
type Options struct {
	Pool *pgxpool.Pool // of a database with [Migrations]
	// Key is the secret that clients send as "Authorization: Bearer <key>". Without one nobody gets in.
	Key string
	// Delay is how late the answer to tok_timeout_after_charge comes: longer than the client waits.
	// 0 is [DefaultDelay].
	Delay   time.Duration
	Log     *slog.Logger          // nil: none. Neither tokens nor bodies are ever logged.
	Metrics prometheus.Registerer // nil: none
	Tracer  *telemetry.Tracer     // nil: none
}

// Server is the provider.
type Server struct {
	opts    Options
	store   *store
	metrics *metrics
	closed  chan struct{}
	close   sync.Once
}

// New makes a provider. Its answers come from Handler.
func New(o Options) *Server {
	if o.Delay <= 0 {
		o.Delay = DefaultDelay
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	nothing := func() {}
	return &Server{
		opts:    o,
		store:   &store{pool: o.Pool, beforeCommit: nothing, afterCommit: nothing},
		metrics: newMetrics(o.Metrics, o.Log),
		closed:  make(chan struct{}),
	}
}

// Close lets answers that are being delayed go at once, so that a shutdown need not wait for them. Give it to
// [http.Server.RegisterOnShutdown].
func (s *Server) Close() { s.close.Do(func() { close(s.closed) }) }

// Ready reports what keeps the provider from working.
func (s *Server) Ready(ctx context.Context) error {
	if s.opts.Key == "" {
		return errors.New("provider: no key is set, so nobody could use it; set Options.Key")
	}
	if _, err := s.store.fingerprintKey(ctx); err != nil {
		return err
	}
	return s.opts.Pool.Ping(ctx)
}

// Handler is the provider's API, with /livez and /readyz.
func (s *Server) Handler() http.Handler {
	r := chi.NewRouter()
	r.NotFound(func(w http.ResponseWriter, _ *http.Request) { sendProblem(w, notFound("There is nothing here.")) })
	r.MethodNotAllowed(func(w http.ResponseWriter, _ *http.Request) {
		sendProblem(w, &Problem{Status: http.StatusMethodNotAllowed, Code: "method_not_allowed"})
	})
	r.Get("/livez", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
	r.Get("/readyz", s.readyz)
	r.Group(func(r chi.Router) {
		r.Use(s.opts.Tracer.Serve(pattern), s.authenticate)
		r.Post("/v1/authorizations", s.command("authorize", s.readAuthorize))
		r.Post("/v1/authorizations/{id}/capture", s.command("capture", func(w http.ResponseWriter, r *http.Request, _ string) (command, *Problem, error) {
			amount, p := readAmount(w, r)
			return capture{ID: chi.URLParam(r, "id"), Amount: amount}, p, nil
		}))
		r.Post("/v1/authorizations/{id}/void", s.command("void", func(_ http.ResponseWriter, r *http.Request, _ string) (command, *Problem, error) {
			return void{ID: chi.URLParam(r, "id")}, nil, nil
		}))
		r.Post("/v1/authorizations/{id}/refunds", s.command("refund", func(w http.ResponseWriter, r *http.Request, _ string) (command, *Problem, error) {
			amount, p := readAmount(w, r)
			return refund{ID: chi.URLParam(r, "id"), Amount: amount}, p, nil
		}))
		r.Post("/v1/voids", s.command("void_by_key", readVoidByKey))
		r.Get("/v1/requests/{key}", s.lookUp)
	})
	return r
}

// pattern is the path of a request as it is routed.
func pattern(r *http.Request) string { return chi.RouteContext(r.Context()).RoutePattern() }

func (s *Server) readyz(w http.ResponseWriter, r *http.Request) {
	if err := s.Ready(r.Context()); err != nil {
		s.opts.Log.Warn("not ready", "error", err)
		sendProblem(w, unavailable())
		return
	}
	w.WriteHeader(http.StatusOK)
}

func (s *Server) authenticate(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		secret, isBearer := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		right := subtle.ConstantTimeCompare([]byte(secret), []byte(s.opts.Key)) == 1
		if !isBearer || !right || s.opts.Key == "" {
			w.Header().Set("WWW-Authenticate", "Bearer")
			sendProblem(w, &Problem{Status: http.StatusUnauthorized, Code: "unauthorized", Param: "Authorization", Detail: "Send the provider's key as a bearer token."})
			return
		}
		next.ServeHTTP(w, r)
	})
}

// command answers a request that changes the ledger.
func (s *Server) command(operation string, read func(w http.ResponseWriter, r *http.Request, key string) (command, *Problem, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		began := time.Now()
		out, problem, err := s.run(w, r, read)
		switch {
		case err != nil:
			s.opts.Log.ErrorContext(r.Context(), "outcome unknown, a repeat will tell", "operation", operation, "error", err)
			problem = unavailable()
			fallthrough
		case problem != nil:
			s.metrics.answered(operation, problem.Status, false, time.Since(began))
			sendProblem(w, problem)
		default:
			s.metrics.answered(operation, out.status, out.replayed, time.Since(began))
			if out.late {
				s.delay(r.Context())
			}
			send(w, out)
		}
	}
}

func (s *Server) run(w http.ResponseWriter, r *http.Request, read func(http.ResponseWriter, *http.Request, string) (command, *Problem, error)) (reply, *Problem, error) {
	key, problem := keyOf(r)
	if problem != nil {
		return reply{}, problem, nil
	}
	c, problem, err := read(w, r, key)
	if problem != nil || err != nil {
		return reply{}, problem, err
	}
	return s.store.do(r.Context(), key, c)
}

func (s *Server) delay(ctx context.Context) {
	timer := time.NewTimer(s.opts.Delay)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	case <-s.closed:
	}
}

func (s *Server) readAuthorize(w http.ResponseWriter, r *http.Request, key string) (command, *Problem, error) {
	var body authorizeBody
	if p := read(w, r, &body); p != nil {
		return nil, p, nil
	}
	b, p := readToken(body.Token)
	if p == nil {
		p = body.check()
	}
	if p != nil {
		return nil, p, nil
	}
	secret, err := s.store.fingerprintKey(r.Context())
	if err != nil {
		return nil, nil, err
	}
	return authorize{
		Key: key, Reference: body.Reference, Amount: body.Amount, Currency: body.Currency,
		Card: cardOf(secret, body.Token, b), Behaviour: b.name,
	}, nil, nil
}

func readAmount(w http.ResponseWriter, r *http.Request) (int64, *Problem) {
	var body amountBody
	if p := read(w, r, &body); p != nil {
		return 0, p
	}
	return body.Amount, checkAmount(body.Amount)
}

func readVoidByKey(w http.ResponseWriter, r *http.Request, key string) (command, *Problem, error) {
	var body voidByKeyBody
	p := read(w, r, &body)
	if p == nil {
		p = checkKey("authorization_key", body.AuthorizationKey)
	}
	if p == nil && body.AuthorizationKey == key {
		p = invalid("authorization_key", "same_key", "A void needs an Idempotency-Key of its own.")
	}
	return voidByKey(body), p, nil
}

// lookUp tells what was answered under a key: the same body, always with 200; the status it was sent with is in
// the header Answer-Status.
func (s *Server) lookUp(w http.ResponseWriter, r *http.Request) {
	key, err := chi.URLParam(r, "key"), error(nil)
	if r.URL.RawPath != "" { // else it was taken from the path as it is decoded
		key, err = url.PathUnescape(key)
	}
	if err != nil {
		sendProblem(w, notFound("No answer is kept under this key."))
		return
	}
	out, found, err := s.store.answer(r.Context(), key)
	switch {
	case err != nil:
		s.opts.Log.ErrorContext(r.Context(), "an answer could not be looked up", "error", err)
		sendProblem(w, unavailable())
	case !found:
		sendProblem(w, notFound("No answer is kept under this key."))
	default:
		sendStored(w, out)
	}
}
