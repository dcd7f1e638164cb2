// Package prometheus_test holds the rules to what the documents and their own tests say. Prometheus' own checks need its
// programs: `make alerts`.
package prometheus_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"

	"github.com/feira-shop/feira/docs"
	"github.com/feira-shop/feira/internal/shop"
)

const runbook = "https://github.com/feira-shop/feira/blob/main/docs/runbook.md#"

// rule is a recording rule or an alert.
type rule struct {
	Record, Alert, Expr string
	Labels, Annotations map[string]string
}

// file is as much of a file of rules or of their tests as is looked at.
type file struct {
	Groups []struct {
		Rules []rule
	}
	Tests []struct {
		Name  string
		Cases []struct {
			Alertname string
			Expected  []any `yaml:"exp_alerts"`
		} `yaml:"alert_rule_test"`
	}
}

func read(t *testing.T, name string, into any) {
	t.Helper()
	raw, err := os.ReadFile(name)
	if err == nil {
		err = yaml.Unmarshal(raw, into)
	}
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}

func rules(t *testing.T) (all []rule) {
	t.Helper()
	var f file
	read(t, "alerts.yml", &f)
	for _, g := range f.Groups {
		all = append(all, g.Rules...)
	}
	if len(all) < 30 {
		t.Fatalf("only %d rules were read", len(all))
	}
	return all
}

func TestAlertsSayWhatTheyMeanAndWhatToDo(t *testing.T) {
	t.Parallel()
	anchors := docs.Anchors(docs.Runbook)
	_, section, found := strings.Cut(docs.Runbook, "\n## Alerts\n")
	if !found {
		t.Fatal("docs/runbook.md has no section Alerts")
	}
	written := docs.Anchors(section)
	for _, r := range rules(t) {
		if r.Alert == "" {
			continue
		}
		if s := r.Labels["severity"]; s != "critical" && s != "warning" {
			t.Errorf("%s: severity %q is neither critical nor warning", r.Alert, s)
		}
		if r.Annotations["summary"] == "" || !strings.Contains(r.Annotations["description"], "$value") {
			t.Errorf("%s needs a summary, and a description with the value", r.Alert)
		}
		anchor := strings.ToLower(r.Alert)
		if r.Annotations["runbook_url"] != runbook+anchor || !anchors[anchor] {
			t.Errorf("%s: its runbook_url must be %s, and docs/runbook.md have that heading", r.Alert, runbook+anchor)
		}
		delete(written, anchor)
	}
	for anchor := range written {
		t.Errorf("docs/runbook.md explains %s among the alerts, which is none", anchor)
	}
}

var (
	metricName = regexp.MustCompile(`\bfeira_[a-z_]+`)
	recorded   = regexp.MustCompile(`\b[a-z_]+:[a-z0-9_:]+`)
	aggregate  = regexp.MustCompile(`_(bucket|sum|count)$`)
)

func TestRulesAskForWhatThereIs(t *testing.T) {
	t.Parallel()
	known, err := docs.Metrics()
	if err != nil {
		t.Fatal(err)
	}
	all := rules(t)
	for _, r := range all {
		for _, name := range metricName.FindAllString(r.Expr, -1) {
			m, ok := known[name]
			if base := aggregate.ReplaceAllString(name, ""); !ok && base != name {
				m, ok = known[base]
				ok = ok && m.Type == "histogram"
			}
			if !ok {
				t.Errorf("%s%s asks for %s, which is not in docs/metrics.md", r.Record, r.Alert, name)
			}
		}
		for _, name := range recorded.FindAllString(r.Expr, -1) {
			if !slices.ContainsFunc(all, func(o rule) bool { return o.Record == name }) {
				t.Errorf("%s%s asks for %s, which nobody records", r.Record, r.Alert, name)
			}
		}
	}
}

func TestEveryAlertHasTestsThatFireAndThatDoNot(t *testing.T) {
	t.Parallel()
	fires, rests := map[string]bool{}, map[string]bool{}
	for _, name := range []string{"alerts_test.yml", "checkout_test.yml"} {
		var f file
		read(t, name, &f)
		for _, test := range f.Tests {
			for _, c := range test.Cases {
				fires[c.Alertname] = fires[c.Alertname] || len(c.Expected) > 0
				rests[c.Alertname] = rests[c.Alertname] || len(c.Expected) == 0
			}
		}
	}
	for _, r := range rules(t) {
		if r.Alert != "" && (!fires[r.Alert] || !rests[r.Alert]) {
			t.Errorf("%s: fires in a test %t, rests in a test %t; both are needed", r.Alert, fires[r.Alert], rests[r.Alert])
		}
	}
}

// A service that is added must be scraped, and missed when it is gone.
func TestEveryServiceIsWatched(t *testing.T) {
	t.Parallel()
	var config struct {
		Scrape []struct {
			Job string `yaml:"job_name"`
			DNS []struct {
				Names []string
				Port  int
			} `yaml:"dns_sd_configs"`
		} `yaml:"scrape_configs"`
	}
	read(t, "prometheus.yml", &config)
	if len(config.Scrape) == 0 || config.Scrape[0].Job != "feira" || len(config.Scrape[0].DNS) != 1 {
		t.Fatalf("prometheus.yml: the first job must be feira, which the alerts go by: %+v", config)
	}
	want := append(shop.Names(), "gateway", "provider")
	if names := config.Scrape[0].DNS[0].Names; !slices.Equal(slices.Sorted(slices.Values(names)), slices.Sorted(slices.Values(want))) {
		t.Errorf("prometheus.yml scrapes %v, not %v", names, want)
	}
	for _, r := range rules(t) {
		for _, service := range append(shop.Names(), "gateway") {
			if r.Alert == "ServiceAbsent" && !strings.Contains(r.Expr, `{service="`+service+`"}`) {
				t.Errorf("ServiceAbsent does not miss %s", service)
			}
		}
	}
}
