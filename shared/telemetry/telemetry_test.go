package telemetry

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
)

func TestLogFormats(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		format Format
		isJSON bool
	}{{Auto, true}, {"", true}, {JSON, true}, {"JSON", true}, {Text, false}} {
		var b bytes.Buffer // not a terminal
		log, err := NewLogger(&b, slog.LevelInfo, c.format)
		if err != nil {
			t.Fatal(err)
		}
		log.Debug("hidden")
		log.Info("seen", "n", 1)
		if strings.Contains(b.String(), "hidden") || !strings.Contains(b.String(), "seen") {
			t.Errorf("%s: %q", c.format, b.String())
		}
		if json.Valid(b.Bytes()) != c.isJSON {
			t.Errorf("%s: JSON %v: %q", c.format, !c.isJSON, b.String())
		}
		if strings.Contains(b.String(), "\x1b") {
			t.Errorf("%s: colours in a file: %q", c.format, b.String())
		}
	}
}

func TestUnknownSettingsAreNamed(t *testing.T) {
	t.Parallel()
	var unknown *UnknownError
	if _, err := NewLogger(&bytes.Buffer{}, slog.LevelInfo, "xml"); !errors.As(err, &unknown) || unknown.Value != "xml" {
		t.Errorf("%v", err)
	}
	if _, err := ParseLevel("loud"); !errors.As(err, &unknown) || unknown.Value != "loud" {
		t.Errorf("%v", err)
	}
	if l, err := ParseLevel("warn"); err != nil || l != slog.LevelWarn {
		t.Errorf("%v, %v", l, err)
	}
}

func TestServicesOfOneProcessKeepApart(t *testing.T) {
	t.Parallel()
	m := NewMetrics()
	for i, name := range []string{"orders", "payments"} {
		c := prometheus.NewCounter(prometheus.CounterOpts{Name: "feira_things_total", Help: "Things."})
		if err := m.Service(name).Register(c); err != nil {
			t.Fatal(err)
		}
		c.Add(float64(i + 1))
	}
	page := scrape(t, m)
	for _, want := range []string{`feira_things_total{service="orders"} 1`, `feira_things_total{service="payments"} 2`, "go_goroutines", "process_cpu_seconds_total"} {
		if !strings.Contains(page, want) {
			t.Errorf("/metrics lacks %s", want)
		}
	}
}

func TestPoolFigures(t *testing.T) {
	t.Parallel()
	m := NewMetrics()
	for _, conns := range []string{"7", "9"} { // the second start of a service
		// A pool without minimum connections does not connect by itself.
		pool, err := pgxpool.New(context.Background(), "postgres://nobody@127.0.0.1:1/none?pool_max_conns="+conns)
		if err != nil {
			t.Fatal(err)
		}
		defer pool.Close()
		if err := RegisterPool(m.Service("orders"), "store", pool); err != nil {
			t.Fatal(err)
		}
		page := scrape(t, m)
		if want := `feira_pgxpool_max_conns{pool="store",service="orders"} ` + conns; !strings.Contains(page, want) {
			t.Errorf("/metrics lacks %s", want)
		}
		if n := strings.Count(page, "feira_pgxpool_max_conns{"); n != 1 {
			t.Errorf("%d pools have figures, want that of the last start", n)
		}
	}
}

// A service that is started again in one process has the figures of its last start; what cannot be registered is said.
func TestALaterStartTakesTheFiguresOver(t *testing.T) {
	t.Parallel()
	m := NewMetrics()
	counter := func() prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: "feira_things_total", Help: "Things."})
	}
	for i := range 2 {
		c := counter()
		c.Add(float64(i + 5))
		if err := Register(m.Service("orders"), c); err != nil {
			t.Fatal(err)
		}
	}
	if page := scrape(t, m); !strings.Contains(page, `feira_things_total{service="orders"} 6`) {
		t.Error("/metrics lacks the figure of the last start")
	}
	other := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "feira_things_total", Help: "Things."}, []string{"kind"})
	if err := Register(m.Service("orders"), other, counter()); err == nil {
		t.Error("another kind of figure was taken")
	}
	if err := Register(nil, counter()); err != nil {
		t.Error(err)
	}
}

func scrape(t *testing.T, m *Metrics) string {
	t.Helper()
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	return w.Body.String()
}
