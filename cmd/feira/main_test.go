package main_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// binary is the program under test, built once. folder holds it and everything that the tests' processes write.
var binary, folder string

func TestMain(m *testing.M) {
	if serve() {
		return
	}
	os.Exit(buildAndRun(m))
}

func buildAndRun(m *testing.M) int {
	var err error
	// Not below a test's own folder: where the tests run as root, Postgres' user must be able to enter.
	if folder, err = os.MkdirTemp("", "feira-test-"); err == nil {
		err = os.Chmod(folder, 0o755)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(folder) }()
	binary = filepath.Join(folder, "feira")
	if out, err := exec.Command("go", "build", "-o", binary, ".").CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "%v\n%s", err, out)
		return 1
	}
	code := m.Run()
	if whole := flag.Lookup("test.run").Value.String() == "" && flag.Lookup("test.skip").Value.String() == "" && !testing.Short(); code == 0 && whole {
		if err := unexercised(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	return code
}

// newFolder is a folder of the test's own that Postgres' user can enter.
func newFolder(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp(folder, "")
	if err == nil {
		err = os.Chmod(dir, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// result is what a command that ended has said.
type result struct {
	code        int
	out, errors string
}

// call runs the program to its end, in an environment of nothing but PATH, HOME and what is given.
func call(t *testing.T, env []string, args ...string) result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var out, errs bytes.Buffer
	cmd := exec.CommandContext(ctx, binary, args...)
	cmd.Env, cmd.Stdout, cmd.Stderr, cmd.WaitDelay = environment(env), &out, &errs, time.Second
	err := runBound(cmd)
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("feira %s: %v\n%s%s", strings.Join(args, " "), err, &out, &errs)
	}
	if err == nil || out.Len() > 0 {
		noteCall(args)
	}
	return result{cmd.ProcessState.ExitCode(), out.String(), errs.String()}
}

// patience bounds everything that a test waits for, on a loaded machine.
const patience = 2 * time.Minute

func environment(more []string) []string {
	env := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME"), "TMPDIR=" + os.Getenv("TMPDIR"), "FEIRA_WHO=tester"}
	if url := os.Getenv("FEIRA_MAVEN_URL"); url != "" {
		env = append(env, "FEIRA_MAVEN_URL="+url)
	}
	return append(env, more...)
}

// ok fails the test when the command did.
func (r result) ok(t *testing.T) string {
	t.Helper()
	if r.code != 0 {
		t.Fatalf("exit code %d\n%s%s", r.code, r.out, r.errors)
	}
	return r.out
}

// fails wants exit code 1 and one sentence on stderr that holds every text.
func (r result) fails(t *testing.T, texts ...string) result {
	t.Helper()
	if r.code != 1 {
		t.Errorf("exit code %d, expected 1\n%s%s", r.code, r.out, r.errors)
	}
	for _, text := range append(texts, "feira: error: ") {
		if !strings.Contains(r.errors, text) {
			t.Errorf("stderr does not say %q:\n%s", text, r.errors)
		}
	}
	if strings.Contains(r.errors, "goroutine ") {
		t.Errorf("stderr holds a stack:\n%s", r.errors)
	}
	return r
}

// has fails the test when the text lacks one of the wanted.
func has(t *testing.T, text string, wanted ...string) {
	t.Helper()
	for _, w := range wanted {
		if !strings.Contains(text, w) {
			t.Errorf("%q is missing in:\n%s", w, text)
		}
	}
}

// eventually polls until the condition holds.
func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	for !condition() {
		select {
		case <-tick.C:
		case <-deadline.C:
			t.Fatalf("waited %s in vain: %s", patience, what)
		}
	}
}
