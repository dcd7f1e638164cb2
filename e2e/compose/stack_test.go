//go:build e2e

package compose

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/feira-shop/feira/shared/auth"
)

// project keeps the test's containers, volumes and networks apart from a user's.
const project = "feira-compose-test"

// patience bounds what takes seconds on a quiet machine.
const patience = 2 * time.Minute

// stack is the Compose file, running.
type stack struct {
	file                  string
	shop, kafka, postgres string // addresses on this machine
	env                   []string
	key                   *auth.Key // that tokens are signed with
	addresses             string    // the tools' feira.env
}

// newStack finds everything that the file needs, removes what an earlier run may have left, and starts nothing.
func newStack(ctx context.Context) (*stack, error) {
	file, err := filepath.Abs("../../deployments/compose/compose.yaml")
	if err != nil {
		return nil, err
	}
	if out, err := exec.CommandContext(ctx, "docker", "version").CombinedOutput(); err != nil {
		return nil, fmt.Errorf("these tests need a Docker engine, and none answers; start one (dockerd), or set DOCKER_HOST: %w\n%s", err, out)
	}
	if out, err := exec.CommandContext(ctx, "docker", "compose", "version").CombinedOutput(); err != nil {
		return nil, fmt.Errorf("these tests need Docker Compose, and docker compose does not answer; install the plugin docker-compose: %w\n%s", err, out)
	}
	s := &stack{file: file}
	ports := make([]string, 3)
	for i := range ports {
		if ports[i], err = freePort(ctx); err != nil {
			return nil, err
		}
	}
	s.shop, s.kafka, s.postgres = "http://127.0.0.1:"+ports[0], "127.0.0.1:"+ports[1], "127.0.0.1:"+ports[2]
	// An order that is held as a duplicate settles when its hold ends.
	s.env = append(os.Environ(), "FEIRA_PORT="+ports[0], "KAFKA_PORT="+ports[1], "POSTGRES_PORT="+ports[2], "FEIRA_HOLD=10s")
	images, err := s.compose(ctx, "config", "--images")
	if err != nil {
		return nil, err
	}
	for image := range strings.FieldsSeq(images) {
		if err := exec.CommandContext(ctx, "docker", "image", "inspect", image).Run(); err != nil {
			return nil, fmt.Errorf("the image %s is not here; build it by make images, or docker pull it", image)
		}
	}
	return s, s.remove(ctx)
}

// freePort is a port of the loopback that nobody listened on a moment ago.
func freePort(ctx context.Context) (string, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return strconv.Itoa(l.Addr().(*net.TCPAddr).Port), nil
}

// compose runs docker compose on the file and gives what it printed.
func (s *stack) compose(ctx context.Context, args ...string) (string, error) {
	return s.docker(ctx, append([]string{"compose", "--file", s.file, "--project-name", project, "--progress", "quiet"}, args...)...)
}

func (s *stack) docker(ctx context.Context, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*patience)
	defer cancel()
	var out, errs bytes.Buffer
	cmd := exec.CommandContext(ctx, "docker", args...)
	cmd.Env, cmd.Stdout, cmd.Stderr, cmd.WaitDelay = s.env, &out, &errs, 5*time.Second
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("docker %s: %w\n%s%s", strings.Join(args, " "), err, &out, &errs)
	}
	return out.String(), nil
}

// must is compose where a failure ends the test.
func (s *stack) must(t *testing.T, args ...string) string {
	t.Helper()
	out, err := s.compose(t.Context(), args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// feira runs a command of feira in the stack.
func (s *stack) feira(t *testing.T, args ...string) string {
	t.Helper()
	return s.must(t, append([]string{"run", "--rm", "-T", "feira"}, args...)...)
}

// secret reads a file of one of the volumes that setup fills, as only root on this machine could.
func (s *stack) secret(ctx context.Context, volume, file string) ([]byte, error) {
	image, err := s.image(ctx, "postgres")
	if err != nil {
		return nil, err
	}
	out, err := s.docker(ctx, "run", "--rm", "--user", "0:0", "--network", "none", "--entrypoint", "cat",
		"--volume", project+"_"+volume+":/secrets:ro", image, "/secrets/"+file)
	return []byte(out), err
}

// image is the image that a service of the file runs.
func (s *stack) image(ctx context.Context, service string) (string, error) {
	out, err := s.compose(ctx, "config", "--format", "json")
	if err != nil {
		return "", err
	}
	var file struct {
		Services map[string]struct{ Image string }
	}
	if err := json.Unmarshal([]byte(out), &file); err != nil {
		return "", err
	}
	if file.Services[service].Image == "" {
		return "", errors.New("the Compose file has no service " + service)
	}
	return file.Services[service].Image, nil
}

// address is how this machine reaches a service's database, with the service's own login.
func (s *stack) address(service string) (string, error) {
	for line := range strings.Lines(s.addresses) {
		if dsn, ok := strings.CutPrefix(strings.TrimSpace(line), "FEIRA_POSTGRES_"+strings.ToUpper(service)+"="); ok {
			return strings.Replace(dsn, "@postgres:5432/", "@"+s.postgres+"/", 1), nil
		}
	}
	return "", fmt.Errorf("no address for the database of %s", service)
}

// keys reads the key that the stack's tokens are signed with, and its databases' addresses.
func (s *stack) keys(ctx context.Context, dir string) error {
	env, err := s.secret(ctx, "secrets-tools", "feira.env")
	if err != nil {
		return err
	}
	s.addresses = string(env)
	pem, err := s.secret(ctx, "secrets-tools", "token.pem")
	if err != nil {
		return err
	}
	path := filepath.Join(dir, "token.pem")
	if err := os.WriteFile(path, pem, 0o600); err != nil {
		return err
	}
	s.key, err = auth.LoadKey(path)
	return err
}
