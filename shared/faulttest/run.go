package faulttest

import (
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// Plan says what a fault test is about.
type Plan struct {
	Number int    // among the numbered fault tests; 0: a case of its own
	Name   string // in two or three words
	Does   string // what it does, and what must hold, in a sentence
}

// Run is a fault test under way. It is safe for concurrent use.
type Run struct {
	tb    testing.TB
	scale float64 // of the full size; 0: short
	began time.Time

	mu     sync.Mutex
	report Report
	drawn  uint64 // generators given away
}

// Report is what a run writes for `make faults`.
type Report struct {
	Plan
	Test    string
	Seed    int64
	Scale   float64 // of the full size; 0: short
	Seconds float64
	Passed  bool
	Figures []Figure // in the order of their first mention
}

// Figure is something that was done or found.
type Figure struct {
	What  string
	Value string
}

// Begin starts a fault test: it says its seed, and writes its report when the test ends.
func Begin(tb testing.TB, p Plan) *Run {
	tb.Helper()
	r := &Run{tb: tb, began: time.Now(), report: Report{Plan: p, Test: tb.Name(), Seed: time.Now().UnixNano()}}
	var err error
	if text := os.Getenv("FEIRA_FAULTS"); text != "" {
		if r.scale, err = strconv.ParseFloat(text, 64); err != nil || r.scale <= 0 || r.scale > 1 {
			tb.Fatalf("FEIRA_FAULTS=%q is no part of the full size: expected a number above 0 and at most 1", text)
		}
	}
	if text := os.Getenv("FEIRA_FAULTS_SEED"); text != "" {
		if r.report.Seed, err = strconv.ParseInt(text, 10, 64); err != nil {
			tb.Fatalf("FEIRA_FAULTS_SEED=%q is no whole number", text)
		}
	}
	r.report.Scale = r.scale
	tb.Logf("%s: FEIRA_FAULTS=%v FEIRA_FAULTS_SEED=%d", p.Name, r.scale, r.report.Seed)
	tb.Cleanup(r.end)
	return r
}

// Times is how often something is done: short in `go test ./...`, else the part of full that was asked for, at
// least once.
func (r *Run) Times(short, full int) int {
	if r.scale == 0 {
		return short
	}
	return max(1, int(float64(full)*r.scale+0.5))
}

// For is how long something is done: short in `go test ./...`, else the part of full that was asked for, at least
// short.
func (r *Run) For(short, full time.Duration) time.Duration {
	return max(short, time.Duration(float64(full)*r.scale))
}

// Dice is a generator of its own for each call; what it gives follows from the seed and the number of calls before.
func (r *Run) Dice() *rand.Rand {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.drawn++
	return rand.New(rand.NewPCG(uint64(r.report.Seed), r.drawn)) //nolint:gosec // a repeatable one is wanted
}

// Count adds to a number of the report: kills, cuts, events.
func (r *Run) Count(what string, n int) {
	r.note(what, func(before string) string {
		sum, _ := strconv.Atoi(before) // "" is none yet
		return strconv.Itoa(sum + n)
	})
}

// Found notes a measured value, such as "takeover, slowest" and "3.2 s". A later one replaces it.
func (r *Run) Found(what, value string) {
	r.note(what, func(string) string { return value })
}

func (r *Run) note(what string, change func(before string) string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range r.report.Figures {
		if f := &r.report.Figures[i]; f.What == what {
			f.Value = change(f.Value)
			return
		}
	}
	r.report.Figures = append(r.report.Figures, Figure{What: what, Value: change("")})
}

// end writes the report, where one is wanted.
func (r *Run) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.report.Seconds = time.Since(r.began).Seconds()
	r.report.Passed = !r.tb.Failed()
	var text strings.Builder
	for _, f := range r.report.Figures {
		text.WriteString(" " + f.What + " " + f.Value + ";")
	}
	r.tb.Logf("%s: %.1f s;%s", r.report.Name, r.report.Seconds, text.String())
	dir := os.Getenv("FEIRA_FAULTS_REPORT")
	if dir == "" {
		return
	}
	raw, err := json.MarshalIndent(r.report, "", "  ")
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, strings.ReplaceAll(r.report.Test, "/", ".")+".json"), raw, 0o600) //nolint:gosec // the folder is the caller's
	}
	if err != nil {
		r.tb.Errorf("the report of %s was not written: %v", r.report.Test, err)
	}
}
