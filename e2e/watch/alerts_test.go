//go:build e2e

package watch

import (
	"cmp"
	"os"
	"os/exec"
	"testing"
)

// rules is where the files of Prometheus are.
const rules = "../../deployments/prometheus"

// program finds a program of Prometheus.
func program(t *testing.T, variable, name string) string {
	t.Helper()
	path, err := exec.LookPath(cmp.Or(os.Getenv(variable), name))
	if err != nil {
		t.Fatalf("%s is missing (%v): install Prometheus 2.42 or newer, such as by apt-get install prometheus, or set %s", name, err, variable)
	}
	return path
}

// TestAlerts has promtool check the configuration and the rules, and run the tests of each alert.
func TestAlerts(t *testing.T) {
	t.Parallel()
	promtool := program(t, "PROMTOOL", "promtool")
	for _, args := range [][]string{
		{"--version"},
		{"check", "config", "prometheus.yml"},
		{"check", "config", "demo.yml"},
		{"check", "rules", "alerts.yml"},
		{"test", "rules", "alerts_test.yml", "checkout_test.yml"},
	} {
		cmd := exec.CommandContext(t.Context(), promtool, args...)
		cmd.Dir = rules
		out, err := cmd.CombinedOutput()
		t.Logf("promtool %v\n%s", args, out)
		if err != nil {
			t.Errorf("promtool %v: %v", args, err)
		}
	}
}
