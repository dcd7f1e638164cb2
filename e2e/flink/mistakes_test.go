//go:build e2e

package flink

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestMistakesAreNamed: what cannot begin says why, and what to do.
func TestMistakesAreNamed(t *testing.T) {
	f := newFlink(t, "127.0.0.1:9")
	empty := filepath.Join(t.TempDir(), "empty.sql")
	if err := os.WriteFile(empty, []byte("-- nothing;\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		says string
	}{
		{[]string{"windows.sql"}, "usage: RunSql --checkpoints=FOLDER"},
		{[]string{"--checkpoints=x"}, "usage: RunSql --checkpoints=FOLDER"},
		{[]string{"--checkpoints=x", "no.sql"}, "the SQL file no.sql cannot be read"},
		{[]string{"--checkpoints=x", empty}, "holds no statement"},
		{[]string{"--checkpoints=x", deployment + "/windows.sql", "kafka=x"}, "needs [disorder]: give each as name=value"},
		{[]string{"--checkpoints=x", deployment + "/windows.sql", "kafka=x", "disorder=0:01", "topic=y"}, "has no variables [topic]"},
		{[]string{"--checkpoints=x", deployment + "/windows.sql", "kafka"}, "'kafka' is not of the form name=value"},
		{[]string{"--checkpoints=x", "-Dname", deployment + "/windows.sql"}, "'name' is not of the form name=value"},
	} {
		java := append([]string{"@" + deployment + "/conf/jvm.options", "-cp", filepath.Join(f.jars, "libs", "*"), "shop.feira.flink.RunSql"}, c.args...)
		cmd := exec.CommandContext(t.Context(), "java", java...)
		cmd.Env = append(os.Environ(), "FLINK_CONF_DIR="+deployment+"/conf")
		out, err := cmd.CombinedOutput()
		var ended *exec.ExitError
		if !errors.As(err, &ended) || ended.ExitCode() != 2 || !strings.Contains(string(out), c.says) {
			t.Errorf("%v: %v, and it says %q; must say %q", c.args, err, out, c.says)
		}
	}
}
