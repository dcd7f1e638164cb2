package failpoint_test

import (
	"errors"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// The program in testdata passes a point ten times and says so each time.
func TestAPointIsPassedOrNot(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, tags, set string
		said            int
		killed          bool
	}{
		{"an ordinary build has none", "", "loop@somebody:3", 10, false},
		{"the third time", "failpoints", "loop@somebody:3", 2, true},
		{"whoever it is", "failpoints", "loop:10", 9, true},
		{"somebody else", "failpoints", "loop@another:1", 10, false},
		{"another point", "failpoints", "elsewhere:1", 10, false},
		{"nothing set", "failpoints", "", 10, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			binary := filepath.Join(t.TempDir(), "loop")
			if out, err := exec.Command("go", "build", "-tags", c.tags, "-o", binary, "./testdata/loop").CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			cmd := exec.Command(binary)
			cmd.Env = []string{"FEIRA_FAILPOINT=" + c.set}
			out, err := cmd.Output()
			var exit *exec.ExitError
			status, _ := cmd.ProcessState.Sys().(syscall.WaitStatus)
			if killed := errors.As(err, &exit) && status.Signal() == syscall.SIGKILL; killed != c.killed || !killed && err != nil {
				t.Errorf("killed %v (%v), want %v", killed, err, c.killed)
			}
			if said := strings.Count(string(out), "passed"); said != c.said {
				t.Errorf("it passed %d times, want %d", said, c.said)
			}
		})
	}
}
