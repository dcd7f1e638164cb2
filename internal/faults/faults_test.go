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
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
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
