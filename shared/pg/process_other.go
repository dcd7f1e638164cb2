//go:build !linux

package pg

import "syscall"

// killByKernel says that nobody but the janitor ends the server when the process that started it is gone.
const killByKernel = false

// processAttributes give the server its account and a process group of its own, so that Ctrl-C on the terminal
// does not reach it before the services that use it have stopped.
func processAttributes(a account) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Credential: a.credential, Setpgid: true}
}

// removeStalePid leaves the decision to Postgres, which asks whether a process of that number lives.
func removeStalePid(string) error { return nil }
