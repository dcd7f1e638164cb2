package fraud

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// changed is the built-in thresholds with one value of the file replaced.
func changed(t *testing.T, from, to string) []byte {
	t.Helper()
	if !bytes.Contains(builtInThresholds, []byte(from)) {
		t.Fatalf("the built-in thresholds have no %s", from)
	}
	return bytes.Replace(builtInThresholds, []byte(from), []byte(to), 1)
}

func TestWhatIsBuiltInIsSound(t *testing.T) {
	t.Parallel()
	p, err := Open(Files{})
	if err != nil {
		t.Fatal(err)
	}
	if now := p.Current(); now.Thresholds.HoldAt < 1 || now.Model == nil || len(now.ThresholdsVersion) != 12 || len(now.ModelVersion) != 12 || now.Model.Training.Rows == 0 {
		t.Errorf("%+v", now)
	}
}

func TestThresholdsAreRefusedByName(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, from, to string
		problem        string
	}{
		{"no JSON", "{", "", "no JSON"},
		{"unknown field", `"hold_at"`, `"hold_up": 1, "hold_at"`, "'hold_up'"},
		{"missing field", `"hold_at": 50,`, "", "'hold_at'"},
		{"too low", `"hold_at": 50`, `"hold_at": 0`, `at "/hold_at"`},
		{"too high", `"weight": 60`, `"weight": 101`, `at "/velocity_minute/weight"`},
		{"a fraction", `"payments": 8`, `"payments": 8.5`, `at "/velocity_minute/payments"`},
		{"text", `"payments": 8`, `"payments": "8"`, `at "/velocity_minute/payments"`},
		{"no currency", `"BRL": 500000`, `"reais": 500000`, "'reais'"},
		{"a negative sum", `"BRL": 500000`, `"BRL": -1`, `at "/velocity_minute/sums/BRL"`},
		{"deviations", `"deviations": 4`, `"deviations": 0.5`, `at "/unusual_amount/deviations"`},
		{"probability", `"probability": 900`, `"probability": 1001`, `at "/model/probability"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, _, err := ParseThresholds("limits.json", changed(t, c.from, c.to))
			var refused *ThresholdsError
			if !errors.As(err, &refused) || refused.File != "limits.json" || !strings.Contains(err.Error(), c.problem) {
				t.Errorf("%v, want %s", err, c.problem)
			}
		})
	}
	_, _, err := ParseThresholds("limits.json", bytes.ReplaceAll(builtInThresholds, []byte(`"weight"`), []byte(`"heavy"`)))
	var refused *ThresholdsError
	if !errors.As(err, &refused) || len(refused.Problems) < 5 {
		t.Errorf("not all problems are named: %v", err)
	}
}

// The version is of the content, not of the file.
func TestAVersionNamesTheContent(t *testing.T) {
	t.Parallel()
	var compact bytes.Buffer
	if err := json.Compact(&compact, builtInThresholds); err != nil {
		t.Fatal(err)
	}
	versions := map[string]string{}
	for name, data := range map[string][]byte{"built in": builtInThresholds, "compact": compact.Bytes(), "other": changed(t, `"hold_at": 50`, `"hold_at": 51`)} {
		_, version, err := ParseThresholds(name, data)
		if err != nil {
			t.Fatal(err)
		}
		versions[name] = version
	}
	if versions["built in"] != versions["compact"] || versions["built in"] == versions["other"] {
		t.Errorf("%v", versions)
	}
}

// spoiled is the built-in model with something wrong.
func spoiled(t *testing.T, how func(*Model)) []byte {
	t.Helper()
	m, _, err := ParseModel("model.json", builtInModel)
	if err != nil {
		t.Fatal(err)
	}
	how(m)
	data, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestModelsAreRefusedByName(t *testing.T) {
	t.Parallel()
	swapped := func(m *Model) { m.Features[0], m.Features[1] = m.Features[1], m.Features[0] }
	for _, c := range []struct {
		name string
		data []byte
		why  string
	}{
		{"no JSON", []byte("{"), "cannot be read"},
		{"NaN", bytes.Replace(spoiled(t, func(m *Model) { m.Intercept = 12345.5 }), []byte("12345.5"), []byte("NaN"), 1), "NaN"},
		{"infinite", bytes.Replace(spoiled(t, func(m *Model) { m.Intercept = 12345.5 }), []byte("12345.5"), []byte("1e999"), 1), "cannot be read"},
		{"unknown field", bytes.Replace(builtInModel, []byte(`"kind"`), []byte(`"sort": 1, "kind"`), 1), "sort"},
		{"another kind", spoiled(t, func(m *Model) { m.Kind = "forest" }), `"forest", expected logistic_regression`},
		{"too few coefficients", spoiled(t, func(m *Model) { m.Coefficients = m.Coefficients[1:] }), "9 coefficients for 10 features"},
		{"too many means", spoiled(t, func(m *Model) { m.Means = append(m.Means, 1) }), "11 means for 10 features"},
		{"no deviations", spoiled(t, func(m *Model) { m.Deviations = nil }), "0 deviations for 10 features"},
		{"a deviation of nothing", spoiled(t, func(m *Model) { m.Deviations[2] = 0 }), "payments_in_a_minute is 0"},
		{"no examples", spoiled(t, func(m *Model) { m.Examples = nil }), "no examples"},
		{"a short example", spoiled(t, func(m *Model) { m.Examples[0].Features = []float64{1} }), "example 0 has 1 features"},
		{"another answer", spoiled(t, func(m *Model) { m.Intercept += 0.001 }), "its trainer gave"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, _, err := ParseModel("trained.json", c.data)
			var refused *ModelError
			if !errors.As(err, &refused) || refused.File != "trained.json" || !strings.Contains(err.Error(), c.why) {
				t.Errorf("%v, want %s", err, c.why)
			}
		})
	}
	for name, c := range map[string]struct {
		how              func(*Model)
		missing, unknown []string
	}{
		"missing":       {func(m *Model) { m.Features = m.Features[:9] }, []string{"high_and_new"}, nil},
		"unknown":       {func(m *Model) { m.Features[9] = "shoe_size" }, []string{"high_and_new"}, []string{"shoe_size"}},
		"another order": {swapped, nil, nil},
	} {
		_, _, err := ParseModel("trained.json", spoiled(t, c.how))
		var refused *FeaturesError
		if !errors.As(err, &refused) || !slices.Equal(refused.Missing, c.missing) || !slices.Equal(refused.Unknown, c.unknown) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// notes are the lines of a log, each waited for.
type notes struct {
	mu    sync.Mutex
	lines chan string
}

func (n *notes) Write(p []byte) (int, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.lines <- string(p)
	return len(p), nil
}

func (n *notes) next(t *testing.T, want string) {
	t.Helper()
	select {
	case line := <-n.lines:
		if !strings.Contains(line, want) {
			t.Fatalf("logged: %s, want %s", line, want)
		}
	case <-time.After(30 * time.Second):
		t.Fatalf("waited in vain for %q in the log", want)
	}
}

func value(t *testing.T, m prometheus.Metric) float64 {
	t.Helper()
	var out dto.Metric
	if err := m.Write(&out); err != nil {
		t.Fatal(err)
	}
	return out.GetGauge().GetValue() + out.GetCounter().GetValue()
}

// Files are read again without a restart. A broken one changes nothing, and says so, once.
func TestChangedFilesTakeEffect(t *testing.T) {
	file := filepath.Join(t.TempDir(), "thresholds.json")
	write := func(data []byte) {
		t.Helper()
		if err := os.WriteFile(file+".new", data, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(file+".new", file); err != nil { // half a file would be a broken one
			t.Fatal(err)
		}
	}
	write(builtInThresholds)
	p, err := Open(Files{Thresholds: file})
	if err != nil {
		t.Fatal(err)
	}
	p.look = 5 * time.Millisecond
	first := p.Current()
	log := &notes{lines: make(chan string, 100)}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- p.watch(ctx, slog.New(slog.NewTextHandler(log, nil))) }()
	log.next(t, "thresholds="+first.ThresholdsVersion)

	write(changed(t, `"hold_at": 50`, `"hold_at": 0`))
	log.next(t, "the policy stays as it was")
	if p.Current() != first || value(t, p.valid) != 0 || value(t, p.reloads.WithLabelValues(refused)) != 1 {
		t.Errorf("a broken file: %+v, valid %g", p.Current(), value(t, p.valid))
	}
	write(changed(t, `"hold_at": 50`, `"hold_at": 70`))
	log.next(t, "judged with")
	if now := p.Current(); now.Thresholds.HoldAt != 70 || now.ThresholdsVersion == first.ThresholdsVersion || value(t, p.valid) != 1 {
		t.Errorf("a new file: %+v, valid %g", now, value(t, p.valid))
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	log.next(t, "no such file")
	if p.Current().Thresholds.HoldAt != 70 {
		t.Errorf("without a file: %+v", p.Current())
	}
	cancel()
	if err := <-done; err != nil || value(t, p.reloads.WithLabelValues(used)) != 1 {
		t.Errorf("%v; %g reloads are counted", err, value(t, p.reloads.WithLabelValues(used)))
	}
}

// SIGHUP has the files read at once, however rarely they are looked at.
func TestSIGHUPReadsTheFiles(t *testing.T) {
	p, err := Open(Files{})
	if err != nil {
		t.Fatal(err)
	}
	p.look = time.Hour
	log := &notes{lines: make(chan string, 100)}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- p.watch(ctx, slog.New(slog.NewTextHandler(log, nil))) }()
	log.next(t, "judged with")
	self, err := os.FindProcess(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	if err := self.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	log.next(t, "judged with")
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestABrokenFileIsNoStart(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "broken.json")
	if err := os.WriteFile(file, []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	var limits *ThresholdsError
	if _, err := Open(Files{Thresholds: file}); !errors.As(err, &limits) {
		t.Errorf("thresholds: %v", err)
	}
	var model *ModelError
	if _, err := Open(Files{Model: file}); !errors.As(err, &model) {
		t.Errorf("model: %v", err)
	}
	if _, err := Open(Files{Model: file + "x"}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	var soon *ForgetError
	if err := (Config{Forget: time.Hour}).Validate(); !errors.As(err, &soon) {
		t.Errorf("forget: %v", err)
	}
}
