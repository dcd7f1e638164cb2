//go:build !linux

package main_test

import "testing"

// atTerminal calls the program with the demo's addresses. Terminals are made on Linux only, so a yes is given by --yes.
func atTerminal(t *testing.T, demo *running, typed string, args ...string) result {
	t.Helper()
	if typed == "y" {
		args = append(args, "--yes")
	}
	return demo.feira(t, args...)
}
