//go:build e2e

package e2e

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/feira-shop/feira/shared/kafka"
	"github.com/feira-shop/feira/shared/pg"
)

// A helper is this test binary once more, as a process that ends with its standard input: so it ends with the process
// that started it, however that one ends.
const (
	helperRole = "E2E_HELPER"
	helperDir  = "E2E_HELPER_DIR"
	helperPort = "E2E_HELPER_PORT"
	helperRun  = "E2E_HELPER_RUN"
)

// help runs a helper's role to its end; false when this process is none.
func help() bool {
	role, dir := os.Getenv(helperRole), os.Getenv(helperDir)
	if role == "" {
		return false
	}
	signal.Ignore(os.Interrupt) // Ctrl-C ends the tests, and so this process's input
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		_, _ = io.Copy(io.Discard, os.Stdin) // its end is all there is to read
	}()
	port, err := strconv.Atoi(os.Getenv(helperPort))
	switch {
	case role == "janitor":
		<-gone
		err = clean(context.Background(), readSettings(), os.Getenv(helperRun), dir)
	case err != nil:
	case role == "kafka":
		err = helpKafka(dir, port, gone)
	default:
		err = helpPostgres(dir, port, gone)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", role+":", err)
		os.Exit(1)
	}
	return true
}

func helpKafka(dir string, port int, gone <-chan struct{}) error {
	k, err := kafka.StartEmbedded(context.Background(), kafka.EmbeddedOptions{Listen: net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), Dir: dir})
	if err != nil {
		return err
	}
	fmt.Printf("ready %d\n", os.Getpid())
	<-gone
	k.Close()
	return nil
}

func helpPostgres(dir string, port int, gone <-chan struct{}) error {
	s, err := pg.Start(context.Background(), pg.Options{Dir: dir, Port: port, Progress: os.Stderr})
	if err != nil {
		return err
	}
	pid, err := postmaster(dir)
	if err != nil {
		return errors.Join(err, s.Stop())
	}
	fmt.Printf("ready %d %s\n", pid, s.AdminDSN())
	select {
	case <-gone:
		return s.Stop()
	case <-s.Done():
		return errors.New("the server has ended")
	}
}

// process that serves the embedded broker or Postgres.
type embeddedMachine struct {
	role, dir string
	port      int
	log       *os.File

	admin string // of Postgres: a superuser's address
	main  int    // pid of the main process
	cmd   *exec.Cmd
	input io.Closer
}

// helper prepares this binary to run as a helper. Its own process group keeps Ctrl-C from it.
func helper(role, dir string, more ...string) (*exec.Cmd, io.WriteCloser, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, nil, err
	}
	cmd := exec.Command(self)
	cmd.Env = append(append(os.Environ(), helperRole+"="+role, helperDir+"="+dir), more...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Stderr = os.Stderr
	input, err := cmd.StdinPipe()
	return cmd, input, err
}

// Start implements machine. It returns when the helper is ready.
func (m *embeddedMachine) Start(ctx context.Context) error {
	cmd, input, err := helper(m.role, m.dir, helperPort+"="+strconv.Itoa(m.port))
	if err != nil {
		return err
	}
	cmd.Stderr = m.log
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return err
	}
	m.cmd, m.input = cmd, input
	said := make(chan string, 1)
	go func() {
		line, _ := bufio.NewReader(out).ReadString('\n') // nothing: it has ended
		said <- line
	}()
	select {
	case line := <-said:
		if n, _ := fmt.Sscanf(line, "ready %d %s", &m.main, &m.admin); n < 1 {
			return fmt.Errorf("the embedded %s did not start: %s", m.role, m.Log(ctx, time.Time{}))
		}
		return nil
	case <-ctx.Done():
		return fmt.Errorf("the embedded %s did not start: %w", m.role, ctx.Err())
	}
}

// Stop implements machine.
func (m *embeddedMachine) Stop(context.Context) error {
	_ = m.input.Close()
	return m.cmd.Wait()
}

// Kill implements machine.
func (m *embeddedMachine) Kill(context.Context) error {
	if err := syscall.Kill(m.main, syscall.SIGKILL); err != nil {
		return err
	}
	_ = m.cmd.Wait() // it did not end well
	_ = m.input.Close()
	return nil
}

// Log implements machine.
func (m *embeddedMachine) Log(context.Context, time.Time) string {
	text, err := os.ReadFile(m.log.Name())
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// postmaster is the main process of the Postgres below a directory.
func postmaster(dir string) (pid int, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return 0, err
	}
	for _, e := range entries {
		text, err := os.ReadFile(dir + "/" + e.Name() + "/postmaster.pid")
		if err != nil {
			continue
		}
		first, _, _ := strings.Cut(string(text), "\n")
		return strconv.Atoi(first)
	}
	return 0, fmt.Errorf("no postmaster.pid below %s", dir)
}
