//go:build e2e

package e2e

import (
	"os/exec"
	"runtime"
	"syscall"
)

// startBound starts a process that the kernel kills when this one is gone. That is bound to the thread that starts it,
// so the caller keeps the thread until it calls release.
func startBound(cmd *exec.Cmd) (release func(), err error) {
	runtime.LockOSThread()
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return runtime.UnlockOSThread, cmd.Start()
}
