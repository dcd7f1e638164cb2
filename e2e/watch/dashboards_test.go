//go:build e2e

package watch

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

const (
	scrapedFor  = 2 * time.Minute
	scrapeEvery = 5 * time.Second // as in demo.yml
)

// series is one line of an answer: of a range its values, else its value.
type series struct {
	Metric map[string]string
	Value  [2]any
	Values [][2]any
}

// numbers are the samples that are numbers.
func (s series) numbers() (n int) {
	for _, v := range append(s.Values, s.Value) {
		text, ok := v[1].(string)
		f, err := strconv.ParseFloat(text, 64)
		if ok && err == nil && !math.IsNaN(f) {
			n++
		}
	}
	return n
}

// ask answers a query over the last two minutes, or now.
func (b *bed) ask(t *testing.T, expr string, over bool) ([]series, error) {
	t.Helper()
	path, form := "/api/v1/query", url.Values{"query": {expr}}
	if over {
		now := time.Now()
		path = "/api/v1/query_range"
		form.Set("start", fmt.Sprint(now.Add(-scrapedFor).Unix()))
		form.Set("end", fmt.Sprint(now.Unix()))
		form.Set("step", fmt.Sprint(scrapeEvery.Seconds()))
	}
	var data struct{ Result []series }
	err := b.get(t, path, form, &data)
	return data.Result, err
}

// demand is ask for those who need at least one number.
func (b *bed) demand(t *testing.T, where, expr string, over bool) (found []series) {
	t.Helper()
	found, err := b.ask(t, expr, over)
	numbers := 0
	for _, s := range found {
		numbers += s.numbers()
	}
	if err == nil && numbers == 0 {
		err = errors.New("no data")
	}
	if err != nil {
		t.Errorf("%s: %v: %s", where, err, expr)
	}
	return found
}

// TestEveryQueryHasData lets a real Prometheus scrape a running demo for two minutes. Then every query of every
// dashboard and every expression of the rules must give data, and no alert may fire.
func TestEveryQueryHasData(t *testing.T) {
	t.Parallel()
	b := start(t)
	scraped := fmt.Sprintf(`count_over_time(up{job="feira"}[10m]) >= %d`, scrapedFor/scrapeEvery)
	until(t, "two minutes of scrapes", func() error {
		found, err := b.ask(t, scraped, false)
		if err == nil && len(found) == 0 {
			err = errors.New("not enough scrapes yet")
		}
		return err
	})
	t.Run("Dashboards", b.dashboards)
	t.Run("Rules", b.rules)
	t.Run("Alerts", b.alerts)
}

// page is as much of a dashboard as holds queries.
type page struct {
	Title      string
	Templating struct {
		List []struct{ Name, Type, Query string }
	}
	Panels []struct {
		Type, Title string
		Targets     []struct {
			Expr    string
			Instant bool
		}
	}
}

// chosen stands for what Grafana puts in: all services, all operators.
var chosen = strings.NewReplacer("$__rate_interval", "1m", "$service", ".*", "$operator", ".*")

var labelValues = regexp.MustCompile(`^label_values\((.*), (\w+)\)$`)

func (b *bed) dashboards(t *testing.T) {
	files, err := filepath.Glob("../../deployments/grafana/dashboards/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("there are no dashboards: %v", err)
	}
	table := []string{fmt.Sprintf("%-28s %7s %8s %7s", "dashboard", "panels", "queries", "series")}
	for _, name := range files {
		raw, err := os.ReadFile(name)
		var p page
		if err == nil {
			err = json.Unmarshal(raw, &p)
		}
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		panels, queries, lines := 0, 0, 0
		for _, v := range p.Templating.List {
			if v.Type == "query" {
				q := labelValues.FindStringSubmatch(v.Query)
				if q == nil {
					t.Fatalf("%s: the choices of $%s cannot be asked for: %s", p.Title, v.Name, v.Query)
				}
				queries++
				lines += len(b.demand(t, p.Title+", choices of $"+v.Name, "group by ("+q[2]+") ("+chosen.Replace(q[1])+")", false))
			}
		}
		for _, d := range p.Panels {
			if d.Type != "row" {
				panels++
			}
			for _, q := range d.Targets {
				queries++
				lines += len(b.demand(t, p.Title+", "+d.Title, chosen.Replace(q.Expr), !q.Instant))
			}
		}
		table = append(table, fmt.Sprintf("%-28s %7d %8d %7d", p.Title, panels, queries, lines))
	}
	t.Logf("\n%s", strings.Join(table, "\n"))
}
