package shoptest_test

import (
	"context"
	"fmt"
	"testing"

	dto "github.com/prometheus/client_model/go"

	"github.com/feira-shop/feira/internal/shoptest"
)

func labelled(m *dto.Metric, name string) string {
	for _, l := range m.GetLabel() {
		if l.GetName() == name {
			return l.GetValue()
		}
	}
	return ""
}

// caughtUp waits until an operator's metrics say that it has nothing to do. A tick, which nobody hurries to check off,
// may be on its way at any time.
func caughtUp(t *testing.T, s *shoptest.Shop, operator string) {
	t.Helper()
	shoptest.Eventually(t, operator+" has caught up", func(context.Context) error {
		for _, name := range []string{"feira_operator_lag_events", "feira_operator_lag_seconds"} {
			if v := s.Metric(t, name, "operator", operator); v != 0 {
				return fmt.Errorf("%s is %v", name, v)
			}
		}
		return nil
	})
}

// metrics: what somebody who runs the shop wants to see of each operator, each relay and each route.
func metrics(t *testing.T, s *shoptest.Shop) {
	all := s.Metrics(t)
	of := func(name, label, value string) *dto.Metric {
		for _, m := range all[name].GetMetric() {
			if labelled(m, label) == value {
				return m
			}
		}
		t.Errorf("there is no %s of %s %s", name, label, value)
		return &dto.Metric{}
	}
	for _, d := range s.Services {
		for _, o := range d.Operators {
			if of("feira_operator_events_processed_total", "operator", o.Name).GetCounter().GetValue() == 0 {
				t.Errorf("%s processed nothing", o.Name)
			}
			for _, name := range []string{"feira_operator_batch_events", "feira_operator_checkpoint_seconds"} {
				if of(name, "operator", o.Name).GetHistogram().GetSampleCount() == 0 {
					t.Errorf("%s of %s counts nothing", name, o.Name)
				}
			}
			for _, name := range []string{
				"feira_operator_duplicates_dropped_total",
				"feira_operator_events_parked_total", "feira_operator_parked", "feira_operator_commits_fenced_total",
			} {
				m := of(name, "operator", o.Name)
				if v := m.GetCounter().GetValue() + m.GetGauge().GetValue(); v != 0 {
					t.Errorf("%s of %s is %v in a shop that is well and at rest", name, o.Name, v)
				}
				if labelled(m, "service") != d.Name {
					t.Errorf("%s of %s is said to be of %q", name, o.Name, labelled(m, "service"))
				}
			}
		}
		for _, o := range d.Operators {
			caughtUp(t, s, o.Name)
		}
		of("feira_relay_outbox_events", "service", d.Name)
		of("feira_relay_oldest_unpublished_seconds", "service", d.Name)
		if of("feira_relay_published_events_total", "service", d.Name).GetCounter().GetValue() == 0 {
			t.Errorf("the relay of %s published nothing", d.Name)
		}
	}
	for _, route := range []string{"/v1/orders", "/v1/orders/{id}", "/v1/orders/{id}/events", "/v1/products/{sku}", "/v1/stock/{sku}", "/v1/customers/{id}/loyalty",
		"/v1/clicks", "/v1/analytics/clicks", "/v1/analytics/conversion", "/v1/analytics/account-spend", "/v1/analytics/top-products",
	} {
		if of("feira_http_request_duration_seconds", "route", route).GetHistogram().GetSampleCount() == 0 {
			t.Errorf("no request of %s was counted", route)
		}
	}
}
