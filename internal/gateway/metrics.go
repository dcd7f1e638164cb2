package gateway

import (
	"fmt"
	"net/http"
	"strconv"

	"github.com/go-chi/chi/v5/middleware"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/feira-shop/feira/shared/telemetry"
)

const (
	// statusLeft is counted when the client did not wait for its answer.
	statusLeft = 499
	// statusBroken is counted when an answer broke off, as when its service died: the client has not got it.
	statusBroken = http.StatusBadGateway
)

// answers counts what clients of the shop were answered, a service that is down included.
type answers struct{ total *prometheus.CounterVec }

func newAnswers(r prometheus.Registerer) (*answers, error) {
	a := &answers{prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "feira_gateway_answers_total",
		Help: "Answers to clients of the shop; 499: the client left before, 502: the answer broke off.",
	}, []string{"route", "method", "code"})}
	if err := telemetry.Register(r, a.total); err != nil {
		return nil, fmt.Errorf("gateway: %w", err)
	}
	return a, nil
}

// begin shows the failures of an operation as 0: of a counter that appears with its first events, nobody sees them rise.
func (a *answers) begin(route, method string) {
	for _, status := range []int{http.StatusInternalServerError, http.StatusServiceUnavailable} {
		a.total.WithLabelValues(route, method, strconv.Itoa(status))
	}
}

// count counts the answers of a route.
func (a *answers) count(route string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen := middleware.NewWrapResponseWriter(w, r.ProtoMajor)
		done := false
		defer func() { // also when a panic breaks off the answer
			status := seen.Status()
			switch {
			case r.Context().Err() != nil:
				status = statusLeft
			case !done:
				status = statusBroken
			case status == 0:
				status = http.StatusOK // net/http sends it for a handler that wrote nothing
			}
			a.total.WithLabelValues(route, r.Method, strconv.Itoa(status)).Inc()
		}()
		next.ServeHTTP(seen, r)
		done = true
	})
}
