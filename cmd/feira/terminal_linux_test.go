package main_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"
)

// openTerminal makes a terminal: what is written to the one end is typed at the other.
func openTerminal(t *testing.T) (keys, screen *os.File) {
	t.Helper()
	keys, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = keys.Close() })
	var unlocked, number uint32
	control := func(request uintptr, value *uint32) {
		if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, keys.Fd(), request, uintptr(unsafe.Pointer(value))); errno != 0 {
			t.Fatal(errno)
		}
	}
	control(syscall.TIOCSPTLCK, &unlocked)
	control(syscall.TIOCGPTN, &number)
	screen, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = screen.Close() })
	return keys, screen
}

// atTerminal calls the program with the demo's addresses on a terminal, where somebody types an answer.
func atTerminal(t *testing.T, demo *running, typed string, args ...string) result {
	t.Helper()
	keys, screen := openTerminal(t)
	var out bytes.Buffer
	cmd := exec.CommandContext(t.Context(), binary, append([]string{"--env-file=" + demo.file()}, args...)...)
	cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.WaitDelay = environment(nil), screen, &out, screen, time.Second
	if _, err := keys.WriteString(typed + "\n"); err != nil {
		t.Fatal(err)
	}
	err := runBound(cmd)
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	_ = screen.Close()
	said, _ := io.ReadAll(keys) // it ends with an error when nobody holds the other end
	if !strings.Contains(string(said), "[y/N]") {
		t.Errorf("the terminal shows no question: %q", said)
	}
	return result{cmd.ProcessState.ExitCode(), out.String(), string(said)}
}
