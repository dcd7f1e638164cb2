// Package docs reads those documents that must agree with the program, so that tests can compare the two: the list of
// metrics and the headings of the runbook.
package docs

import (
	_ "embed"
	"fmt"
	"regexp"
	"strings"
)

var (
	//go:embed metrics.md
	metrics string
	// Runbook is the runbook, as Markdown.
	//go:embed runbook.md
	Runbook string
)

// Metric is a metric as metrics.md describes it.
type Metric struct {
	Name, Type, Unit string
	Labels           []string // without service, which all but feira_build_info have
	Meaning          string
}

// RowError says that a row of metrics.md cannot be read.
type RowError struct{ Row, Reason string }

func (e *RowError) Error() string {
	return fmt.Sprintf("docs/metrics.md: %s in the row %s; expected | `name` | type | unit | `label`, … | meaning |", e.Reason, e.Row)
}

// quoted is a word in the type of code.
var quoted = regexp.MustCompile("`([a-z_]+)`")

// Metrics lists the metrics of metrics.md by name.
func Metrics() (map[string]Metric, error) {
	found := map[string]Metric{}
	for row := range strings.Lines(metrics) {
		row = strings.TrimSpace(row)
		if !strings.HasPrefix(row, "| `feira_") {
			continue
		}
		m, err := metricOf(row)
		if err != nil {
			return nil, err
		}
		if _, twice := found[m.Name]; twice {
			return nil, &RowError{row, "a name that was listed before"}
		}
		found[m.Name] = m
	}
	return found, nil
}

func metricOf(row string) (Metric, error) {
	cells := strings.Split(strings.Trim(row, "|"), "|")
	if len(cells) != 5 {
		return Metric{}, &RowError{row, fmt.Sprintf("%d cells", len(cells))}
	}
	for i := range cells {
		cells[i] = strings.TrimSpace(cells[i])
	}
	name := quoted.FindStringSubmatch(cells[0])
	if name == nil || name[0] != cells[0] {
		return Metric{}, &RowError{row, "no name"}
	}
	m := Metric{Name: name[1], Type: cells[1], Unit: cells[2], Meaning: cells[4]}
	for _, label := range quoted.FindAllStringSubmatch(cells[3], -1) {
		m.Labels = append(m.Labels, label[1])
	}
	if m.Unit == "" || m.Meaning == "" {
		return Metric{}, &RowError{row, "no unit or meaning"}
	}
	return m, nil
}

// punctuation is what GitHub drops when it makes an anchor of a heading.
var punctuation = regexp.MustCompile(`[^\p{L}\p{N}_ -]`)

// Anchors lists what can be linked to in a Markdown document: the names that GitHub gives to its headings.
func Anchors(markdown string) map[string]bool {
	anchors := map[string]bool{}
	code := false
	for line := range strings.Lines(markdown) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "```") {
			code = !code
		}
		title := strings.TrimLeft(line, "#")
		if code || title == line || !strings.HasPrefix(title, " ") {
			continue
		}
		name := punctuation.ReplaceAllString(strings.ToLower(strings.TrimSpace(title)), "")
		anchors[strings.ReplaceAll(name, " ", "-")] = true
	}
	return anchors
}
