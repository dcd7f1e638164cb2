package jobs

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

// What is alerted on is shown before it happens the first time, or nobody would see it rise.
func TestOutcomesAreShownBeforeTheFirst(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	if _, err := newMetrics(registry, []Definition{{Kind: "charge"}, {Kind: "refund"}}); err != nil {
		t.Fatal(err)
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == "feira_job_attempts_total" {
			if n := len(f.GetMetric()); n != 2*len(outcomes) {
				t.Errorf("%d counters of attempts, not one per kind and outcome: %d", n, 2*len(outcomes))
			}
			return
		}
	}
	t.Error("no attempts are shown")
}
