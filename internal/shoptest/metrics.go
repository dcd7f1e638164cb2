package shoptest

import (
	"net/http"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// Metrics reads /metrics as Prometheus does, by the names of the metrics.
func (s *Shop) Metrics(tb testing.TB) map[string]*dto.MetricFamily {
	tb.Helper()
	got := s.Do(tb, http.MethodGet, "/metrics", nil, nil)
	if got.Status != http.StatusOK {
		tb.Fatalf("read the metrics: %d %s", got.Status, got.Body)
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(got.Body))
	must(tb, "read the metrics", err)
	return families
}

// Metric reads the value of a counter or gauge that has a label of the given value.
func (s *Shop) Metric(tb testing.TB, name, label, value string) float64 {
	tb.Helper()
	for _, m := range s.Metrics(tb)[name].GetMetric() {
		for _, l := range m.GetLabel() {
			if l.GetName() == label && l.GetValue() == value {
				return m.GetCounter().GetValue() + m.GetGauge().GetValue() // it is one of them
			}
		}
	}
	tb.Fatalf("there is no metric %s with %s=%q", name, label, value)
	return 0
}
