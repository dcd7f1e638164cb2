package pg

import (
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"syscall"
)

//go:embed janitor.sh
var janitorScript string

// janitor is a small shell beside the server that outlives this process: it does what must be done once this
// process is gone, even killed. Where the kernel ends the server and nothing is to be removed there is none.
type janitor struct {
	cmd     *exec.Cmd
	pipe    *os.File // its end tells the janitor that this process is gone
	dismiss func()
}

func engage(pid int, opts Options) (*janitor, error) {
	j := &janitor{dismiss: func() {}}
	if killByKernel && !opts.Temporary {
		return j, nil
	}
	signal, dir := "", ""
	if !killByKernel {
		signal = "INT"
	}
	if opts.Temporary {
		dir = opts.Dir
	}
	return hire(signal, pid, dir)
}

// hire starts the janitor. signal "" sends none, dir "" removes nothing.
func hire(signal string, pid int, dir string) (*janitor, error) {
	read, write, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("janitor: %w", err)
	}
	cmd := exec.Command("/bin/sh", "-c", janitorScript, "feira-janitor", signal, strconv.Itoa(pid), dir) //nolint:gosec,noctx // fixed script; it must outlive every context
	cmd.Stdin = read
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	err = cmd.Start()
	_ = read.Close()
	if err != nil {
		_ = write.Close()
		return nil, fmt.Errorf("janitor: %w", err)
	}
	j := &janitor{cmd: cmd, pipe: write}
	j.dismiss = sync.OnceFunc(func() {
		_, _ = j.pipe.WriteString("done\n")
		_ = j.pipe.Close()
		_ = j.cmd.Wait()
	})
	return j, nil
}
