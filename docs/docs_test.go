package docs

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
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

// A document that names a test as the proof of a promise must name one that is there.
func TestNamedTestsAreThere(t *testing.T) {
	t.Parallel()
	there := map[string]bool{}
	var pages []string
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != ".." && strings.HasPrefix(d.Name(), "."):
			return filepath.SkipDir
		case strings.HasSuffix(path, ".md"):
			pages = append(pages, path)
		case strings.HasSuffix(path, "_test.go"):
			raw, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			for _, match := range declared.FindAllSubmatch(raw, -1) {
				there[string(match[1])] = true
			}
		}
		return nil
	})
	if err != nil || len(there) < 100 || len(pages) < 20 {
		t.Fatalf("read %d tests and %d pages: %v", len(there), len(pages), err)
	}
	for _, page := range pages {
		raw, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range mentioned.FindAllSubmatch(raw, -1) {
			if name := string(match[1]); !there[name] {
				t.Errorf("%s names %s, which is nowhere", page, name)
			}
		}
	}
}

var (
	declared  = regexp.MustCompile(`(?m)^func ((?:Test|Benchmark)\w+)\(`)
	mentioned = regexp.MustCompile("`(Test[A-Z]\\w+)[`(]")
)
