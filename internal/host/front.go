package host

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/feira-shop/feira/api"
	"github.com/feira-shop/feira/internal/gateway"
	"github.com/feira-shop/feira/shared/telemetry"
	"github.com/feira-shop/feira/shared/web"
)

// Front is everything that a process answers on its address.
type Front struct {
	Services map[string]http.Handler // parts of the API, by the name of the service: see [Host.Handlers]
	Pages    *http.ServeMux          // what else is answered; health and metrics are added to it
	Health   *web.Health
	Metrics  *telemetry.Metrics
	Public   bool         // clients of the shop come here: what they are answered is counted, as of the gateway
	Log      *slog.Logger // nil: discard
}

// Handler puts the gateway before the services, and /livez, /readyz and /metrics beside them.
func (f Front) Handler() (http.Handler, error) {
	f.AddHealth()
	spec, err := api.Spec()
	if err != nil {
		return nil, err
	}
	o := gateway.Options{Spec: spec, Source: api.Source(), Services: f.Services, Page: f.Pages, Log: f.Log}
	if f.Public {
		o.Metrics = f.Metrics.Service("gateway")
	}
	return gateway.New(o)
}

// AddHealth adds /livez, /readyz and /metrics to the pages.
func (f Front) AddHealth() {
	health := f.Health.Handler(f.Metrics.Handler())
	for _, path := range []string{"/livez", "/readyz", "/metrics"} {
		f.Pages.Handle(path, health)
	}
}

// readyWithin bounds a start on a loaded machine.
const readyWithin = time.Minute

// AwaitReady waits until every check passes, for a minute at most; then it says which do not.
func AwaitReady(ctx context.Context, health *web.Health) error {
	limit, cancel := context.WithTimeout(ctx, readyWithin)
	defer cancel()
	for {
		failing := health.Ready(limit)
		if len(failing) == 0 {
			return nil
		}
		select {
		case <-limit.Done():
			var errs []error
			for _, name := range slices.Sorted(maps.Keys(failing)) {
				errs = append(errs, fmt.Errorf("%s: %w", name, failing[name]))
			}
			return fmt.Errorf("not ready after %s: %w", readyWithin, errors.Join(errs...))
		case <-time.After(50 * time.Millisecond):
		}
	}
}
