package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/feira-shop/feira/shared/faulttest"
)

// writeReport writes what a full run did and found.
func writeReport(ctx context.Context, file string, b *book, steps []step) error {
	commit, err := exec.CommandContext(ctx, "git", "log", "-1", "--format=%h", "--", "*.go", "*.sql", "go.mod", ":!internal/faults/*").Output()
	if err != nil {
		return fmt.Errorf("ask git which program this is: %w", err)
	}
	var w strings.Builder
	fmt.Fprintf(&w, `# Fault tests: the last run

Written by `+"`make faults`"+` on %s, of the program as of %s: %v of the full size, seed %d, %d cores, %s.
What each test is and how to repeat one: [shared/faulttest](../shared/faulttest/doc.go), [internal/faults](../internal/faults/doc.go).

## What was done and found

| | test | what it does | figures | it noticed the lack of | seconds |
|---|---|---|---|---|---:|
`, time.Now().UTC().Format("2 January 2006"), bytes.TrimSpace(commit), b.scale, b.Seed, runtime.NumCPU(), runtime.Version())
	for _, l := range b.lines(steps) {
		fmt.Fprintln(&w, l)
	}
	fmt.Fprint(&w, "\n## Protections that were taken out\n\nEach by a change of the program in the test alone; the test then fails.\n\n| without | the test that noticed | how it showed | seconds |\n|---|---|---|---:|\n")
	for _, s := range steps {
		if m, ok := s.(mutant); ok {
			r, _ := b.result(m)
			fmt.Fprintf(&w, "| %s | %s | %s | %.0f |\n", cell(m.Protection), cell(m.test.name()), cell(r.Showed), r.Seconds)
		}
	}
	if err := os.WriteFile(file, []byte(w.String()), 0o644); err != nil { //nolint:gosec // a page for everybody
		return err
	}
	fmt.Println("wrote", file)
	return nil
}

// lines are the rows of the tests, the numbered ones first.
func (b *book) lines(steps []step) []string {
	type row struct {
		faulttest.Report
		where, caught string
	}
	caught := map[test][]string{}
	for _, s := range steps {
		if m, ok := s.(mutant); ok {
			caught[m.test] = append(caught[m.test], m.Protection)
		}
	}
	var rows []row
	for _, s := range steps {
		t, ok := s.(test)
		if !ok {
			continue
		}
		r, _ := b.result(t)
		for _, one := range r.Reports {
			rows = append(rows, row{one, t.Package + " " + one.Test, strings.Join(caught[t], "; ")})
		}
	}
	slices.SortStableFunc(rows, func(x, y row) int { return order(x.Number) - order(y.Number) })
	var lines []string
	for _, r := range rows {
		number := ""
		if r.Number > 0 {
			number = fmt.Sprint(r.Number)
		}
		var figures []string
		for _, f := range r.Figures {
			figures = append(figures, f.What+" "+f.Value)
		}
		lines = append(lines, fmt.Sprintf("| %s | **%s**<br>%s | %s | %s | %s | %.0f |", number, cell(r.Name),
			cell(strings.TrimPrefix(r.where, "./")), cell(r.Does), cell(strings.Join(figures, "; ")), cell(r.caught), r.Seconds))
	}
	return lines
}

// order puts those without a number last.
func order(number int) int {
	if number == 0 {
		return 1000
	}
	return number
}

// folder is one that a test made.
var folder = regexp.MustCompile(regexp.QuoteMeta(os.TempDir()) + `/\S*/`)

// cell keeps a text within its cell, and this machine's folders out of it.
func cell(s string) string {
	return strings.NewReplacer("|", "\\|", "\n", " ", "\x00", "").Replace(folder.ReplaceAllString(s, "…/"))
}
