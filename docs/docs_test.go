package docs

import (
	"errors"
	"slices"
	"testing"
)

func TestMetricsAreRead(t *testing.T) {
	t.Parallel()
	all, err := Metrics()
	if err != nil {
		t.Fatal(err)
	}
	m := all["feira_job_attempts_total"]
	if len(all) < 50 || m.Type != "counter" || m.Unit != "attempts" || !slices.Equal(m.Labels, []string{"kind", "outcome"}) {
		t.Errorf("%d metrics, %+v", len(all), m)
	}
}

func TestRowsThatCannotBeRead(t *testing.T) {
	t.Parallel()
	for _, row := range []string{
		"| `feira_x` | gauge | bytes | meaning |",
		"| `feira_x`, `feira_y` | gauge | bytes | | meaning |",
		"| `feira_x` | gauge | | | meaning |",
	} {
		var wrong *RowError
		if m, err := metricOf(row); !errors.As(err, &wrong) {
			t.Errorf("%s: %+v, %v", row, m, err)
		}
	}
}

func TestAnchorsAreThoseOfGitHub(t *testing.T) {
	t.Parallel()
	got := Anchors("# A title\n\n## OperatorLag\n### What, *exactly*?\n#not a heading\n```sh\n# a comment\n```\n## Last `one`\n")
	for _, want := range []string{"a-title", "operatorlag", "what-exactly", "last-one"} {
		if !got[want] {
			t.Errorf("there is no anchor %s", want)
		}
	}
	if len(got) != 4 {
		t.Errorf("%v", got)
	}
}
