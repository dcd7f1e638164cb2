package main

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// A mutant whose text is gone, or whose test is, proves nothing any more.
func TestEveryMutantStillFitsTheProgram(t *testing.T) {
	t.Chdir(filepath.Join("..", ".."))
	tests, err := find(".", "Test")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, m := range mutants {
		if _, err := m.apply(); err != nil {
			t.Errorf("%s: %v", m.name(), err)
		}
		if !slices.Contains(tests, m.test) {
			t.Errorf("%s: there is no %s", m.name(), m.test.name())
		}
		if seen[m.Protection] {
			t.Errorf("%s is there twice", m.name())
		}
		seen[m.Protection] = true
	}
}

func TestTheTestsAreFound(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"a/a_test.go":          "package a\nfunc TestFaultOne(t *testing.T) {}\nfunc TestOther(t *testing.T) {}\n",
		"b/b_test.go":          "//go:build e2e\n\npackage b\nfunc TestFaultTwo(t *testing.T) {}\n",
		"b/testdata/c_test.go": "package c\nfunc TestFaultNot(t *testing.T) {}\n",
		"a/a.go":               "package a\nfunc TestFaultNeither() {}\n",
	} {
		place(t, filepath.Join(dir, name), text)
	}
	got, err := find(dir, "TestFault")
	if err != nil {
		t.Fatal(err)
	}
	want := []test{{"./a", "TestFaultOne", false}, {"./b", "TestFaultTwo", true}}
	if !slices.Equal(got, want) {
		t.Errorf("found %v, want %v", got, want)
	}
}

func TestWhatNeedsTheMachineIsAlone(t *testing.T) {
	t.Parallel()
	for of, want := range map[test]bool{
		{Package: "./cmd/feira", Test: "TestFaultSoak"}:                    true,
		{Package: "./e2e", Test: "TestFaultBroker", E2E: true}:             true,
		{Package: "./shared/stream", Test: "TestFaultOneMillionCards"}:     true,
		{Package: "./shared/operator", Test: "TestFaultDatabaseAway"}:      false,
		{Package: "./shared/eventstore", Test: "TestFaultUnknownOutcomes"}: false,
	} {
		if of.alone() != want {
			t.Errorf("%s is alone: %t, want %t", of.name(), !want, want)
		}
	}
}

func TestOutcomesAreToldApart(t *testing.T) {
	t.Parallel()
	fault := test{Test: "TestFaultX"}
	failure := os.ErrInvalid
	for _, c := range []struct {
		name           string
		out            string
		err            error
		passed, failed bool
	}{
		{"passed", "--- PASS: TestFaultX (1.00s)\nok", nil, true, false},
		{"failed", "--- FAIL: TestFaultX (1.00s)\nFAIL", failure, false, true},
		{"a panic", "x\npanic: boom", failure, false, true},
		{"did not compile", "FAIL x [build failed]", failure, false, false},
		{"no such test", "testing: warning: no tests to run", nil, false, false},
	} {
		if r := judge(fault, c.out, c.err); r.Passed != c.passed || r.Failed != c.failed || !r.Passed && r.Said == "" {
			t.Errorf("%s: %+v", c.name, r)
		}
	}
}

func TestAComplaintIsTheLastWordOfATest(t *testing.T) {
	t.Parallel()
	fault := test{Test: "TestFaultX"}
	for out, want := range map[string]string{
		"    x_test.go:1: seed 7\n    x_test.go:9: 3 lost\n    run.go:129: X: 1 s;\n--- FAIL: TestFaultX (1.00s)\n    y_test.go:1: z": "3 lost",
		"=== RUN x\npanic: boom\n\ngoroutine 1": "panic: boom",
		"FAIL x [build failed]":                 "",
	} {
		if got := showed(fault, out); got != want {
			t.Errorf("of %q it keeps %q, want %q", out, got, want)
		}
	}
}

// What a test says may hold anything; the report is a text, with a row for each.
func TestACellIsText(t *testing.T) {
	if got, want := cell("a\x00b | c\nd"), `ab \| c d`; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// A result is forgotten when what its test imports has changed, however deep, and only then.
func TestAResultHoldsForItsProgram(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":             "module m\n\ngo 1.26\n",
		"deep/deep.go":       "package deep\n\nfunc N() int { return n }\n\nvar n = 1\n",
		"middle/middle.go":   "package middle\n\nimport \"m/deep\"\n\nfunc N() int { return deep.N() }\n",
		"one/one_test.go":    "package one\n\nimport (\n\t\"testing\"\n\n\t\"m/middle\"\n)\n\nfunc TestFaultOne(t *testing.T) { _ = middle.N() }\n",
		"two/two_test.go":    "package two\n\nimport \"testing\"\n\nfunc TestFaultTwo(t *testing.T) {}\n",
		"cmd/feira/main.go":  "package main\n\nfunc main() {}\n",
		"e2e/e2e_test.go":    "//go:build e2e\n\npackage e2e\n\nimport \"testing\"\n\nfunc TestFaultThree(t *testing.T) {}\n",
		"e2e/always_test.go": "package e2e\n",
	} {
		place(t, filepath.Join(dir, name), text)
	}
	t.Chdir(dir)
	one, two, three := test{"./one", "TestFaultOne", false}, test{"./two", "TestFaultTwo", false}, test{"./e2e", "TestFaultThree", true}
	program := func() programs {
		p, err := compile(t.Context(), []test{one, two, three})
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	before := program()
	b := &book{dir: t.TempDir(), programs: before}
	for _, s := range []test{one, two, three} {
		if err := b.keep(s, result{Good: true}); err != nil {
			t.Fatal(err)
		}
	}
	place(t, filepath.Join(dir, "deep/deep.go"), "package deep\n\nfunc N() int { return n }\n\nvar n = 2\n")
	b.programs = program()
	for s, want := range map[test]bool{one: false, two: true, three: true} {
		if _, holds := b.result(s); holds != want {
			t.Errorf("after a change of what TestFaultOne imports, a result of %s holds: %t", s.name(), holds)
		}
	}
	place(t, filepath.Join(dir, "cmd/feira/main.go"), "package main\n\nfunc main() { println() }\n")
	b.programs = program()
	for s, want := range map[test]bool{two: true, three: false} {
		if _, holds := b.result(s); holds != want {
			t.Errorf("after a change of the program that TestFaultThree starts, a result of %s holds: %t", s.name(), holds)
		}
	}
}

func place(t *testing.T, file, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
