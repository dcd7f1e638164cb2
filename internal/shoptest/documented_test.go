package shoptest_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	dto "github.com/prometheus/client_model/go"

	"github.com/feira-shop/feira/docs"
	"github.com/feira-shop/feira/internal/shoptest"
)

// documented compares what the shop shows after all the tests with docs/metrics.md, both ways.
func documented(t *testing.T, s *shoptest.Shop) {
	written, err := docs.Metrics()
	if err != nil {
		t.Fatal(err)
	}
	shown := s.Metrics(t)
	for name, family := range shown {
		if !strings.HasPrefix(name, "feira_") {
			delete(shown, name) // of the Prometheus client
			continue
		}
		m, known := written[name]
		if !known {
			t.Errorf("%s is not in docs/metrics.md; add a row", name)
			continue
		}
		if typ := strings.ToLower(family.GetType().String()); typ != m.Type {
			t.Errorf("%s is a %s, in docs/metrics.md a %s", name, typ, m.Type)
		}
		if family.GetHelp() == "" {
			t.Errorf("%s has no help text", name)
		}
		for _, metric := range family.GetMetric() {
			if got, want := labels(metric), withService(m); !slices.Equal(got, want) {
				t.Errorf("%s has the labels %v, in docs/metrics.md %v", name, got, want)
				break
			}
		}
	}
	for name := range written {
		if shown[name] == nil {
			t.Errorf("%s is in docs/metrics.md, but a running shop does not show it", name)
		}
	}
	wellNamed(t, slices.Collect(maps.Values(shown)))
}

func labels(m *dto.Metric) (names []string) {
	for _, l := range m.GetLabel() {
		names = append(names, l.GetName())
	}
	slices.Sort(names)
	return names
}

func withService(m docs.Metric) []string {
	names := slices.Clone(m.Labels)
	if m.Name != "feira_build_info" {
		names = append(names, "service")
	}
	slices.Sort(names)
	return names
}

// wellNamed holds names to the conventions of Prometheus, but for those that are their collector's.
func wellNamed(t *testing.T, families []*dto.MetricFamily) {
	t.Helper()
	problems, err := promlint.NewWithMetricFamilies(families).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		if !strings.HasPrefix(p.Metric, "feira_pgxpool_") {
			t.Errorf("%s: %s", p.Metric, p.Text)
		}
	}
}
