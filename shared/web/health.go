package web

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"sync"
	"time"
)

const checkTimeout = 2 * time.Second

// Check says why a part cannot do its work at the moment, or nil. Its context ends after 2 s.
type Check func(ctx context.Context) error

// Health answers /livez (the process runs) and /readyz (every named check passes). Reasons go to the log, when
// they change; the answers hold the names only.
type Health struct {
	log *slog.Logger

	mu       sync.Mutex
	checks   map[string]Check
	reasons  map[string]string // of the checks that fail
	draining bool
}

// NewHealth makes a Health without checks.
func NewHealth(log *slog.Logger) *Health {
	return &Health{log: orDiscard(log), checks: map[string]Check{}, reasons: map[string]string{}}
}

// Add adds a check, or replaces the one of that name.
func (h *Health) Add(name string, c Check) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.checks[name] = c
}

// Drain makes /readyz fail from now on: the first step of a shutdown.
func (h *Health) Drain() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.draining = true
}

// Ready runs all checks at once and returns what fails, by name; empty means ready.
func (h *Health) Ready(ctx context.Context) map[string]error {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	h.mu.Lock()
	draining := h.draining
	results := make(chan result, len(h.checks))
	names := make(map[string]bool, len(h.checks))
	for name, check := range h.checks {
		names[name] = true
		go func() { results <- result{name, check(ctx)} }()
	}
	h.mu.Unlock()
	failing := map[string]error{}
	if draining {
		failing["shutdown"] = errors.New("the process is shutting down")
	}
	for range len(names) {
		select {
		case r := <-results:
			delete(names, r.name)
			if r.err != nil {
				failing[r.name] = r.err
			}
		case <-ctx.Done():
			for name := range names { // a check that does not heed its context must not hold up the answer
				failing[name] = context.Cause(ctx)
			}
			return failing
		}
	}
	return failing
}

type result struct {
	name string
	err  error
}

// Handler serves /livez and /readyz, and /metrics when metrics is given.
func (h *Health) Handler(metrics http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) {
		_ = WriteJSON(w, http.StatusOK, map[string]string{"status": "ok"})
	})
	mux.HandleFunc("GET /readyz", h.readyz)
	if metrics != nil {
		mux.Handle("GET /metrics", metrics)
	}
	return mux
}

func (h *Health) readyz(w http.ResponseWriter, r *http.Request) {
	failing := h.Ready(r.Context())
	h.note(failing)
	answer := struct {
		Status string            `json:"status"`
		Checks map[string]string `json:"checks"`
	}{"ready", map[string]string{}}
	h.mu.Lock()
	for name := range h.checks {
		answer.Checks[name] = "ok"
	}
	h.mu.Unlock()
	status := http.StatusOK
	for name := range failing {
		answer.Status, answer.Checks[name], status = "not ready", "failing", http.StatusServiceUnavailable
	}
	w.Header().Set("Cache-Control", "no-store")
	_ = WriteJSON(w, status, answer)
}

// note logs each reason once, and that it is over.
func (h *Health) note(failing map[string]error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for name, err := range failing {
		if h.reasons[name] != err.Error() {
			h.reasons[name] = err.Error()
			h.log.Warn("not ready", "check", name, "error", err)
		}
	}
	for name := range h.reasons {
		if failing[name] == nil {
			delete(h.reasons, name)
			h.log.Info("ready again", "check", name)
		}
	}
}
