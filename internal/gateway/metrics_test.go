package gateway

import (
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/feira-shop/feira/api"
)

// counted is a gateway with its figures.
func counted(t *testing.T, services map[string]http.Handler) (http.Handler, *prometheus.Registry) {
	t.Helper()
	spec, err := api.Spec()
	if err != nil {
		t.Fatal(err)
	}
	registry := prometheus.NewRegistry()
	g, err := New(Options{Spec: spec, Source: api.Source(), Services: services, Metrics: registry})
	if err != nil {
		t.Fatal(err)
	}
	return g, registry
}

// answered lists code, method, route and count of what is not 0.
func answered(t *testing.T, registry *prometheus.Registry) (lines []string) {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range families[0].GetMetric() {
		var words []string
		for _, l := range m.GetLabel() {
			words = append(words, l.GetValue())
		}
		for range int(m.GetCounter().GetValue()) {
			lines = append(lines, strings.Join(words, " "))
		}
	}
	return lines
}

func TestAnswersToClientsAreCounted(t *testing.T) {
	t.Parallel()
	dead, err := Proxy("127.0.0.1:1", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	breaks := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{"half":`))
		panic(http.ErrAbortHandler)
	})
	g, registry := counted(t, map[string]http.Handler{"orders": dead, "catalog": named("catalog"), "inventory": breaks})
	ask(g, http.MethodPost, "/v1/orders", "{}")
	ask(g, http.MethodGet, "/v1/products/A", "")
	ask(g, http.MethodGet, "/v1/products/B", "")
	ask(g, http.MethodGet, "/v1/nothing", "")
	func() {
		defer func() {
			if recover() == nil {
				t.Error("an answer that broke off looks whole")
			}
		}()
		ask(g, http.MethodGet, "/v1/stock/A", "")
	}()
	left, cancel := context.WithCancel(t.Context())
	cancel()
	g.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/v1/orders", nil).WithContext(left))

	want := []string{
		"200 GET /v1/products/{sku}", "200 GET /v1/products/{sku}", "499 POST /v1/orders", "502 GET /v1/stock/{sku}", "503 POST /v1/orders",
	}
	if got := answered(t, registry); !slices.Equal(got, want) {
		t.Errorf("counted %q, not %q", got, want)
	}
}

// A failure that never happened is shown as 0, or nobody would see the first ones rise.
func TestFailuresAreShownBeforeTheFirst(t *testing.T) {
	t.Parallel()
	_, registry := counted(t, nil)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range families[0].GetMetric() {
		l := m.GetLabel()
		if l[0].GetValue() == "503" && l[1].GetValue() == http.MethodPost && l[2].GetValue() == "/v1/orders" {
			return
		}
	}
	t.Error("there is no 503 of checkouts yet")
}
