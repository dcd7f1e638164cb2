package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/feira-shop/feira/shared/faulttest"
)

// result is what became of a step.
type result struct {
	Program string // of which this is true
	Good    bool   // a test that passed, a mutant that was noticed
	Passed  bool
	Failed  bool // as a test, not by not compiling
	Seconds float64
	Said    string             // the end of the output, where something is wrong
	Showed  string             // how: the complaint of the test
	Reports []faulttest.Report // what the test did and found
}

// book remembers what has passed.
type book struct {
	Seed     int64
	programs programs
	scale    float64
	dir      string
}

// openBook goes on with the book of this size, or begins one.
func openBook(o *options, p programs) (*book, error) {
	b := &book{Seed: o.Seed, programs: p, scale: o.Scale}
	root := filepath.Join("bin", "faults")
	if last, ok := latest(root, o.Scale); ok && !o.Fresh && (o.Seed == 0 || o.Seed == last.Seed) {
		last.programs = p
		return last, nil
	}
	if b.Seed == 0 {
		b.Seed = time.Now().UnixNano()
	}
	b.dir = filepath.Join(root, fmt.Sprintf("%v-%d", o.Scale, b.Seed))
	if err := os.RemoveAll(b.dir); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(b.dir, 0o750); err != nil {
		return nil, err
	}
	return b, write(filepath.Join(b.dir, "book.json"), b)
}

// latest is the book of a size that was begun last.
func latest(root string, scale float64) (*book, bool) {
	books, err := filepath.Glob(filepath.Join(root, fmt.Sprintf("%v-*", scale), "book.json"))
	if err != nil || len(books) == 0 {
		return nil, false
	}
	newest := slices.MaxFunc(books, func(a, b string) int { return modified(a).Compare(modified(b)) })
	b := &book{scale: scale, dir: filepath.Dir(newest)}
	return b, read(newest, b) == nil
}

func modified(file string) time.Time {
	info, err := os.Stat(file)
	if err != nil {
		return time.Time{}
	}
	return info.ModTime()
}

func write(file string, v any) error {
	raw, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, raw, 0o600)
}

func read(file string, v any) error {
	raw, err := os.ReadFile(file) //nolint:gosec // below bin/faults
	if err != nil {
		return err
	}
	return json.Unmarshal(raw, v)
}

func (b *book) file(s step) string { return filepath.Join(b.dir, slug(s.name())+".json") }

// result is what is known of a step that was good, and has not changed since.
func (b *book) result(s step) (result, bool) {
	var r result
	return r, read(b.file(s), &r) == nil && r.Good && r.Program == s.program(b.programs)
}

func (b *book) keep(s step, r result) error {
	r.Program = s.program(b.programs)
	return write(b.file(s), r)
}

// goTest runs one test.
func (b *book) goTest(ctx context.Context, t test, env []string) result {
	reports, err := os.MkdirTemp(b.dir, "reports-")
	if err != nil {
		return result{Said: err.Error()}
	}
	defer func() { _ = os.RemoveAll(reports) }()
	if reports, err = filepath.Abs(reports); err != nil {
		return result{Said: err.Error()}
	}
	args := []string{"test", "-count=1", "-v", "-timeout", limit.String(), "-run", "^" + t.Test + "$"}
	if t.E2E {
		args = append(args, "-tags", "e2e")
	}
	cmd := exec.CommandContext(ctx, "go", append(args, t.Package)...) //nolint:gosec // names found in the tree
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}             // go test does not tell the test that it was interrupted
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGINT) }
	cmd.WaitDelay = 30 * time.Second
	cmd.Env = append(os.Environ(), "FEIRA_FAULTS_SEED="+fmt.Sprint(b.Seed), "FEIRA_FAULTS_REPORT="+reports)
	if env == nil { // mutants are noticed by the short run
		cmd.Env = append(cmd.Env, "FEIRA_FAULTS="+fmt.Sprint(b.scale))
	}
	cmd.Env = append(cmd.Env, env...)
	began := time.Now()
	out, err := cmd.CombinedOutput()
	r := judge(t, string(out), err)
	r.Seconds = time.Since(began).Seconds()
	r.Reports = collect(reports)
	return r
}

// judge reads what go test said.
func judge(t test, out string, err error) result {
	r := result{
		Passed: err == nil && strings.Contains(out, "--- PASS: "+t.Test),
		Failed: err != nil && (strings.Contains(out, "--- FAIL: "+t.Test) || strings.Contains(out, "\npanic: ")),
	}
	if !r.Passed {
		if err == nil {
			err = errNoTest
		}
		r.Said = tail(errors.Join(fmt.Errorf("%s", out), err).Error())
		r.Showed = showed(t, out)
	}
	return r
}

var complaint = regexp.MustCompile(`(?m)^\s+\w+_test\.go:\d+: (.+)$|^(panic: .+)$`)

// showed is what a test that failed complained of: the last it said before it was over.
func showed(t test, out string) string {
	before, _, _ := strings.Cut(out, "--- FAIL: "+t.Test)
	all := complaint.FindAllStringSubmatch(before, -1)
	if len(all) == 0 {
		return ""
	}
	return all[len(all)-1][1] + all[len(all)-1][2]
}

func collect(dir string) []faulttest.Report {
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		return nil
	}
	var all []faulttest.Report
	for _, f := range files {
		var r faulttest.Report
		if read(f, &r) == nil {
			all = append(all, r)
		}
	}
	return all
}

// tail is the end of a long text.
func tail(s string) string {
	const most = 6000
	if len(s) > most {
		return "…" + s[len(s)-most:]
	}
	return s
}
