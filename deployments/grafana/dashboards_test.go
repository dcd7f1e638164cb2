package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"

	"github.com/feira-shop/feira/docs"
)

// pages reads what Grafana reads.
func pages(t *testing.T) map[string]page {
	t.Helper()
	files, err := filepath.Glob("dashboards/*.json")
	if err != nil || len(files) != len(dashboards()) {
		t.Fatalf("%d files of %d dashboards, %v; run go generate ./deployments/grafana, and remove what is left over", len(files), len(dashboards()), err)
	}
	all := map[string]page{}
	for _, name := range files {
		raw, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		d := json.NewDecoder(bytes.NewReader(raw))
		d.DisallowUnknownFields() // a field with another name would be ignored by Grafana in silence
		var p page
		if err := d.Decode(&p); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		all[name] = p
	}
	return all
}

func TestFilesAreThoseOfTheirSource(t *testing.T) {
	t.Parallel()
	for _, d := range dashboards() {
		want, err := render(d)
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(filepath.Join("dashboards", d.uid+".json"))
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is not what its source gives (%v); run go generate ./deployments/grafana and commit", d.uid, err)
		}
	}
}

func TestPagesAreWhole(t *testing.T) {
	t.Parallel()
	uids, titles := map[string]bool{}, map[string]bool{}
	for name, p := range pages(t) {
		if p.SchemaVersion != schemaVersion || p.UID == "" || p.Title == "" || p.Description == "" || !slices.Contains(p.Tags, "feira") {
			t.Errorf("%s lacks its schema version, uid, title, description or tag", name)
		}
		if uids[p.UID] || titles[p.Title] {
			t.Errorf("%s has the uid or the title of another dashboard", name)
		}
		uids[p.UID], titles[p.Title] = true, true
		if len(p.Links) == 0 || p.Templating.List[0].Name != "datasource" || p.Templating.List[0].Type != "datasource" {
			t.Errorf("%s does not lead to the other dashboards, or has no choice of the data source", name)
		}
		ids := map[int]bool{}
		var placed []drawn
		for _, d := range p.Panels {
			if ids[d.ID] || d.ID <= 0 {
				t.Errorf("%s: panel %q has the id %d of another one", name, d.Title, d.ID)
			}
			ids[d.ID] = true
			for _, o := range placed {
				if overlap(d.GridPos, o.GridPos) {
					t.Errorf("%s: panel %q lies over %q", name, d.Title, o.Title)
				}
			}
			placed = append(placed, d)
			complete(t, name, d)
		}
	}
}

func overlap(a, b gridPos) bool {
	return a.X < b.X+b.W && b.X < a.X+a.W && a.Y < b.Y+b.H && b.Y < a.Y+a.H
}

func complete(t *testing.T, name string, d drawn) {
	t.Helper()
	if g := d.GridPos; g.W <= 0 || g.H <= 0 || g.X < 0 || g.X+g.W > columns {
		t.Errorf("%s: panel %q does not lie on the page: %+v", name, d.Title, g)
	}
	if d.Title == "" {
		t.Errorf("%s: panel %d has no title", name, d.ID)
	}
	if d.Type == "row" {
		return
	}
	if d.Description == "" || d.DataSource == nil || *d.DataSource != source || d.FieldConfig.Defaults.Unit == "" || len(d.Targets) == 0 {
		t.Errorf("%s: panel %q lacks a description, the chosen data source, a unit or a query", name, d.Title)
	}
	refs := map[string]bool{}
	for _, q := range d.Targets {
		if q.Expr == "" || q.LegendFormat == "" || q.DataSource != source || refs[q.RefID] {
			t.Errorf("%s: a query of panel %q lacks its expression, legend or data source, or has the name of another one: %+v", name, d.Title, q)
		}
		refs[q.RefID] = true
	}
}

var (
	metricName = regexp.MustCompile(`\b(feira|process|go|up)(_[a-z_]+)?\b`)
	recorded   = regexp.MustCompile(`\b[a-z_]+:[a-z_]+:[a-z0-9_]+`)
	aggregate  = regexp.MustCompile(`_(bucket|sum|count)$`)
	variables  = regexp.MustCompile(`\$\{?([a-z]+)`)
	inQuotes   = regexp.MustCompile(`"[^"]*"`)
)

// ofTheClient are metrics that the Prometheus client and Prometheus itself give.
var ofTheClient = []string{"up", "process_cpu_seconds_total", "process_resident_memory_bytes", "process"} // the last is a label

// Every metric that is asked for is one of docs/metrics.md or recorded by a rule, and every variable is declared.
func TestQueriesAskForWhatThereIs(t *testing.T) {
	t.Parallel()
	known, err := docs.Metrics()
	if err != nil {
		t.Fatal(err)
	}
	rules, err := os.ReadFile("../prometheus/alerts.yml")
	if err != nil {
		t.Fatal(err)
	}
	exists := func(metric string) bool {
		m, whole := known[metric]
		if base, ok := known[aggregate.ReplaceAllString(metric, "")]; ok && !whole {
			return base.Type == "histogram"
		}
		return whole && m.Type != "histogram" || slices.Contains(ofTheClient, metric)
	}
	for name, p := range pages(t) {
		declared := map[string]bool{"__rate_interval": true}
		for _, v := range p.Templating.List {
			declared[v.Name] = true
		}
		ask := func(where, expr string) {
			for _, metric := range metricName.FindAllString(inQuotes.ReplaceAllString(expr, ""), -1) {
				if !exists(metric) {
					t.Errorf("%s: %s asks for %s, which is neither in docs/metrics.md nor the Prometheus client's", name, where, metric)
				}
			}
			for _, rule := range recorded.FindAllString(expr, -1) {
				if !strings.Contains(string(rules), "record: "+rule+"\n") {
					t.Errorf("%s: %s asks for %s, which no rule records", name, where, rule)
				}
			}
			for _, v := range variables.FindAllStringSubmatch(strings.ReplaceAll(expr, "$__rate_interval", ""), -1) {
				if !declared[v[1]] {
					t.Errorf("%s: %s uses $%s, which the page does not have", name, where, v[1])
				}
			}
		}
		for _, v := range p.Templating.List[1:] {
			ask("variable "+v.Name, strings.NewReplacer("label_values(", "", ", service)", "", ", operator)", "").Replace(v.Query))
		}
		for _, d := range p.Panels {
			for _, q := range d.Targets {
				ask("panel "+d.Title, q.Expr)
			}
		}
	}
}

// What Grafana is provisioned with must name what the panels and the traces go by.
func TestProvisioning(t *testing.T) {
	t.Parallel()
	var sources struct {
		DataSources []struct{ UID, Type, URL string } `yaml:"datasources"`
	}
	var folders struct {
		Providers []struct {
			Options struct{ Path string }
		}
	}
	for name, into := range map[string]any{"provisioning/datasources/feira.yaml": &sources, "provisioning/dashboards/feira.yaml": &folders} {
		raw, err := os.ReadFile(name)
		if err == nil {
			err = yaml.Unmarshal(raw, into)
		}
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	types := map[string]bool{}
	for _, s := range sources.DataSources {
		types[s.Type] = s.UID != "" && s.URL != ""
	}
	if !types["prometheus"] || !types["tempo"] {
		t.Errorf("the data sources Prometheus and Tempo are not both provisioned: %+v", sources)
	}
	if len(folders.Providers) != 1 || folders.Providers[0].Options.Path == "" {
		t.Errorf("no folder of dashboards is provisioned: %+v", folders)
	}
}
