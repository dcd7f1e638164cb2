// Package gateway gives the shop one public address. It knows from the API's description which service answers
// which path, and hands the request over: to a handler in this process, or to an address.
//
// It adds nothing that a service relies on: authentication, validation and limits are each service's own.
package gateway

import (
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/go-chi/chi/v5"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/feira-shop/feira/shared/web"
	"github.com/feira-shop/feira/shared/web/docs"
)

// Options configure a gateway.
type Options struct {
	Spec   *openapi3.T // which service answers which path: the tag of its operations
	Source []byte      // the description as it is served at /openapi.yaml
	// Services are the backends by service name: a handler of this process, or a [Proxy]. A service of the
	// description that is missing here answers 503.
	Services map[string]http.Handler
	Page     http.Handler // everything outside of /v1, /docs and /openapi.yaml; nil: 404
	Log      *slog.Logger // nil: discard
	// Metrics is where the answers to clients are counted; nil: nowhere, as where another gateway is in front.
	Metrics prometheus.Registerer
}

// UnknownServiceError says that a backend was given for a service that the description does not have.
type UnknownServiceError struct {
	Service string
	Known   []string
}

func (e *UnknownServiceError) Error() string {
	return fmt.Sprintf("gateway: the API has no service %q; it has %s", e.Service, strings.Join(e.Known, ", "))
}

// Routes lists which service answers which path and method: pattern, method, service.
func Routes(spec *openapi3.T) map[string]map[string]string {
	routes := map[string]map[string]string{}
	for pattern, item := range spec.Paths.Map() {
		routes[pattern] = map[string]string{}
		for method, op := range item.Operations() {
			if len(op.Tags) > 0 {
				routes[pattern][method] = op.Tags[0]
			}
		}
	}
	return routes
}

// New makes a gateway.
func New(o Options) (http.Handler, error) {
	routes := Routes(o.Spec)
	if err := knownOnly(o.Services, routes); err != nil {
		return nil, err
	}
	counted, err := newAnswers(o.Metrics)
	if err != nil {
		return nil, err
	}
	fail := web.Failures(o.Log)
	notFound := func(w http.ResponseWriter, r *http.Request) { fail(w, r, web.NewError(web.NotFound, "", "")) }
	r := chi.NewRouter()
	r.Use(web.Identify)
	for pattern, methods := range routes {
		// Any other method: a service that has the path says which it allows. (Handle first: it sets all methods.)
		if services := slices.Sorted(maps.Values(methods)); len(services) > 0 {
			r.Handle(pattern, counted.count(pattern, backend(o.Services[services[0]], services[0], fail)))
		}
		for method, service := range methods {
			counted.begin(pattern, method)
			r.Method(method, pattern, counted.count(pattern, backend(o.Services[service], service, fail)))
		}
	}
	described := docs.Handler(o.Source)
	r.Handle("/docs", described)
	r.Handle("/docs/*", described)
	r.Handle("/openapi.yaml", described)
	r.HandleFunc("/v1/*", notFound)
	r.NotFound(notFound)
	if o.Page != nil {
		r.NotFound(o.Page.ServeHTTP)
	}
	return r, nil
}

func knownOnly(services map[string]http.Handler, routes map[string]map[string]string) error {
	known := map[string]bool{}
	for _, methods := range routes {
		for _, service := range methods {
			known[service] = true
		}
	}
	for name := range services {
		if !known[name] {
			return &UnknownServiceError{name, slices.Sorted(maps.Keys(known))}
		}
	}
	return nil
}

func backend(h http.Handler, service string, fail web.ErrorHandler) http.Handler {
	if h != nil {
		return h
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fail(w, r, web.NewError(web.Unavailable, "service_not_running", "The service "+service+" is not running here."))
	})
}
