// Package flink_test holds the SQL files to the contract of the events, and the Compose file to the SQL files. That Flink's
// answers are right is shown by e2e/flink.
package flink_test

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"

	"github.com/feira-shop/feira/shared/events"
)

// jobs are the SQL files, as the Compose file names their services, and the types of events that each reads.
var jobs = map[string][]events.Event{
	"windows":    {events.PaymentCaptured{}, events.PaymentRefunded{}},
	"duplicates": {events.PaymentAuthorized{}},
}

var (
	comment  = regexp.MustCompile(`(?m)^\s*--.*$`)
	variable = regexp.MustCompile(`\$\{(\w+)(:-[^}]*)?}`)
	typeName = regexp.MustCompile(`'(shop\.feira\.[\w.]+)'`)
	topic    = regexp.MustCompile(`'topic' = '([\w-]+)'`)
	source   = regexp.MustCompile(`ce_source = '([^']+)'`)
	column   = regexp.MustCompile("(?m)^  `?(\\w+)`? +(STRING|BIGINT|ROW<([^>]*)>|TIMESTAMP_LTZ\\(3\\)),$")
	table    = regexp.MustCompile(`(?s)CREATE TABLE (\w+) \((.*?)\) WITH \((.*?)\);`)
)

func read(t *testing.T, name string) string {
	t.Helper()
	raw, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// sql is a file without its comments.
func sql(t *testing.T, job string) string {
	t.Helper()
	return comment.ReplaceAllString(read(t, job+".sql"), "")
}

// tables are the definitions in a file: columns and options.
func tables(t *testing.T, job string) (from, into []string) {
	t.Helper()
	found := table.FindAllStringSubmatch(sql(t, job), -1)
	if len(found) != 2 {
		t.Fatalf("%s.sql defines %d tables; one that is read and one that is written are expected", job, len(found))
	}
	return found[0], found[1]
}

func TestJobsReadWhatIsPublished(t *testing.T) {
	t.Parallel()
	for job, want := range jobs {
		text := sql(t, job)
		var types []string
		for _, m := range typeName.FindAllStringSubmatch(text, -1) {
			types = append(types, m[1])
		}
		slices.Sort(types)
		types = slices.Compact(types)
		var expected []string
		for _, e := range want {
			expected = append(expected, e.EventType())
			if versions := events.Versions(e.EventType()); len(versions) != 1 {
				t.Errorf("%s.sql reads one version of %s, and there are %v", job, e.EventType(), versions)
			}
		}
		slices.Sort(expected)
		if !slices.Equal(types, expected) {
			t.Errorf("%s.sql reads %v, must read %v", job, types, expected)
		}
		if m := source.FindStringSubmatch(text); m == nil || m[1] != events.Payments.Source() {
			t.Errorf("%s.sql takes events of source %v, their owner is %s", job, m, events.Payments.Source())
		}
		from, _ := tables(t, job)
		if m := topic.FindStringSubmatch(from[3]); m == nil || m[1] != events.Payments.Name {
			t.Errorf("%s.sql reads topic %v", job, m)
		}
	}
}

// Every column without a source in the headers is a field of the events' data, spelt as it is there.
func TestColumnsAreFieldsOfTheEvents(t *testing.T) {
	t.Parallel()
	for job, kinds := range jobs {
		fields := map[string]bool{}
		for _, e := range kinds {
			raw, err := json.Marshal(e)
			if err != nil {
				t.Fatal(err)
			}
			var object map[string]json.RawMessage
			if err := json.Unmarshal(raw, &object); err != nil {
				t.Fatal(err)
			}
			for name, value := range object {
				fields[name] = true
				var inner map[string]json.RawMessage
				if json.Unmarshal(value, &inner) == nil {
					for n := range inner {
						fields[name+"."+n] = true
					}
				}
			}
		}
		fields["card_fingerprint"] = true // it is left out where it is empty
		from, _ := tables(t, job)
		found := column.FindAllStringSubmatch(from[2], -1)
		if len(found) < 3 {
			t.Fatalf("%s.sql: %d columns were understood", job, len(found))
		}
		for _, c := range found {
			if !fields[c[1]] {
				t.Errorf("%s.sql: no event has %s", job, c[1])
			}
			for inner := range strings.SplitSeq(c[3], ", ") {
				if name, _, _ := strings.Cut(inner, " "); name != "" && !fields[c[1]+"."+name] {
					t.Errorf("%s.sql: no event has %s.%s", job, c[1], name)
				}
			}
		}
	}
}

func TestJobsWriteToTopicsOfTheirOwnExactlyOnce(t *testing.T) {
	t.Parallel()
	for job := range jobs {
		_, into := tables(t, job)
		name := topic.FindStringSubmatch(into[3])
		if name == nil || slices.ContainsFunc(events.Topics(), func(t events.Topic) bool { return t.Name == name[1] }) {
			t.Errorf("%s.sql writes to topic %v, which has an owner", job, name)
		}
		for _, option := range []string{
			"'sink.delivery-guarantee' = 'exactly-once'", "'sink.transactional-id-prefix' = 'feira-flink-" + job + "'",
		} {
			if !strings.Contains(into[3], option) {
				t.Errorf("%s.sql: the sink lacks %s", job, option)
			}
		}
	}
}

// composed is as much of the Compose file as is looked at.
type composed struct {
	Services map[string]struct {
		Image       string
		Command     []string
		Profiles    []string
		Networks    []string
		Volumes     []string
		Environment map[string]string
		ReadOnly    bool           `yaml:"read_only"`
		CapDrop     []string       `yaml:"cap_drop"`
		SecurityOpt []string       `yaml:"security_opt"`
		DependsOn   map[string]any `yaml:"depends_on"`
	}
	Networks map[string]*struct{ Internal bool }
	Volumes  map[string]any
}

func TestTheComposeFileRunsTheJobs(t *testing.T) {
	t.Parallel()
	var file composed
	if err := yaml.Unmarshal([]byte(read(t, "../compose/compose.yaml")), &file); err != nil {
		t.Fatal(err)
	}
	version := regexp.MustCompile(`<flink.version>(.*)</flink.version>`).FindStringSubmatch(read(t, "pom.xml"))[1]
	topics := strings.Join(file.Services["flink-topics"].Command, " ")
	kafka := file.Services["kafka"]
	for job := range jobs {
		name := "flink-" + job
		s := file.Services[name]
		if !slices.Equal(s.Profiles, []string{"flink"}) || s.Image != "${FLINK_IMAGE:-feira-flink:"+version+"}" || len(s.Command) == 0 || s.Command[0] != job+".sql" {
			t.Fatalf("%s: %+v", name, s)
		}
		given := map[string]string{}
		for _, arg := range s.Command[1:] {
			variable, value, _ := strings.Cut(arg, "=")
			given[variable] = value
		}
		for _, m := range variable.FindAllStringSubmatch(sql(t, job), -1) {
			if _, there := given[m[1]]; !there && m[2] == "" {
				t.Errorf("%s is not given %s", name, m[1])
			}
		}
		if !strings.Contains(kafka.Environment["KAFKA_ADVERTISED_LISTENERS"], "INSIDE://"+given["kafka"]+",") {
			t.Errorf("%s looks for Kafka at %s", name, given["kafka"])
		}
		// It may reach Kafka and write to its checkpoints, and nothing more.
		if !s.ReadOnly || !slices.Equal(s.CapDrop, []string{"ALL"}) || !slices.Equal(s.SecurityOpt, []string{"no-new-privileges:true"}) ||
			!slices.Equal(s.Volumes, []string{name + ":/var/lib/flink"}) || len(s.Networks) != 1 || !slices.Contains(kafka.Networks, s.Networks[0]) {
			t.Errorf("%s has more than it needs, or less: %+v", name, s)
		}
		for other, o := range file.Services {
			if other != "kafka" && !strings.HasPrefix(other, "flink-") && slices.Contains(o.Networks, s.Networks[0]) {
				t.Errorf("%s can reach %s", name, other)
			}
		}
		if network := file.Networks[s.Networks[0]]; network == nil || !network.Internal {
			t.Errorf("the network of %s leads out of this machine", name)
		}
		if _, there := file.Volumes[name]; !there {
			t.Errorf("there is no volume %s", name)
		}
		if _, waits := s.DependsOn["flink-topics"]; !waits {
			t.Errorf("%s does not wait for its topic", name)
		}
		_, into := tables(t, job)
		if name := topic.FindStringSubmatch(into[3])[1]; !regexp.MustCompile(`\b` + name + `\b`).MatchString(topics) {
			t.Errorf("flink-topics does not make %s: %s", name, topics)
		}
	}
}
