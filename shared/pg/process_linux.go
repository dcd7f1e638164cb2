package pg

import (
	"fmt"
	"os"
	"strconv"
	"syscall"
)

// killByKernel says that the kernel ends the server when the process that started it is gone.
const killByKernel = true

// processAttributes give the server its account, a fast shutdown when its starter dies, and a process group of its
// own, so that Ctrl-C on the terminal does not reach it before the services that use it have stopped.
func processAttributes(a account) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Credential: a.credential, Pdeathsig: syscall.SIGINT, Setpgid: true}
}

// removeStalePid removes the pid file of a server that was killed, since Postgres refuses to start when the number
// in it now belongs to any other process of the same user. The locks have shown that no server of ours runs here;
// a postmaster started by hand is recognised by its working directory.
func removeStalePid(data string) error {
	lines := pidFile(data)
	if len(lines) == 0 {
		return nil
	}
	pid, err := strconv.Atoi(lines[0])
	if err == nil && pid > 0 {
		if cwd, err := os.Readlink(fmt.Sprintf("/proc/%d/cwd", pid)); err == nil && cwd == data {
			return &InUseError{Dir: data, PID: pid}
		}
	}
	if err := os.Remove(data + "/postmaster.pid"); err != nil {
		return &DirError{Dir: data, Reason: err.Error(), Do: "run as the user who made it"}
	}
	return nil
}
