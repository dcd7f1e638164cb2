//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/moby/moby/api/pkg/stdcopy"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/network"
	"github.com/moby/moby/client"
	"github.com/testcontainers/testcontainers-go"
)

// label is on every container of ours; its value is that of the run.
const label = "feira.e2e"

// containerStop is how long a container may take to stop before it is killed.
const containerStop = 30 // seconds

// noDockerError says what is missing and what can be done.
type noDockerError struct{ err error }

func (e *noDockerError) Error() string {
	tried := strings.ReplaceAll(e.err.Error(), "\n", "; ")
	return "the end-to-end tests need Docker, which does not answer. Start it, or point DOCKER_HOST at one that runs. Without Docker, " +
		"make e2e KAFKA=embedded runs them on the embedded broker and Postgres, and E2E_KAFKA=host:port with E2E_POSTGRES=postgres://… " +
		"on a Kafka and a Postgres that are there. Tried: " + tried
}

func (e *noDockerError) Unwrap() error { return e.err }

// dockerWithin is how long Docker may take to answer.
const dockerWithin = 30 * time.Second

// connectDocker answers for a Docker that works.
func connectDocker(ctx context.Context) (*client.Client, error) {
	ctx, cancel := context.WithTimeout(ctx, dockerWithin)
	defer cancel()
	docker, err := testcontainers.NewDockerClientWithOpts(ctx)
	if err == nil {
		_, err = docker.Client.Ping(ctx, client.PingOptions{})
	}
	if err != nil {
		return nil, &noDockerError{err}
	}
	return docker.Client, nil
}

// box is a machine that is a container. It keeps what it has written while it is stopped.
type box struct {
	docker *client.Client
	id     string
}

// boxOptions are what a box needs beside its image.
type boxOptions struct {
	run    string // goes into the label
	images []string
	port   int // on this machine, the same after each start
	inside string
	env    map[string]string
	cmd    []string
}

// startBox starts a container of the first image that is on the machine; of the last, which is fetched, where none is.
func startBox(ctx context.Context, docker *client.Client, o boxOptions) (*box, string, error) {
	image := o.images[len(o.images)-1]
	for _, i := range o.images {
		if _, err := docker.ImageInspect(ctx, i); err == nil {
			image = i
			break
		}
	}
	inside, err := network.ParsePort(o.inside)
	if err != nil {
		return nil, image, err
	}
	options := []testcontainers.ContainerCustomizer{
		testcontainers.WithEnv(o.env), testcontainers.WithLabels(map[string]string{label: o.run}), testcontainers.WithExposedPorts(o.inside),
		testcontainers.WithHostConfigModifier(func(c *container.HostConfig) {
			c.PortBindings = network.PortMap{inside: {{HostIP: netip.MustParseAddr("127.0.0.1"), HostPort: strconv.Itoa(o.port)}}}
		}),
	}
	if o.cmd != nil {
		options = append(options, testcontainers.WithCmd(o.cmd...))
	}
	c, err := testcontainers.Run(ctx, image, options...)
	if err != nil {
		return nil, image, fmt.Errorf("start a container of %s (make images builds images without a registry; KAFKA_IMAGE and POSTGRES_IMAGE name others): %w", image, err)
	}
	return &box{docker: docker, id: c.GetContainerID()}, image, nil
}

// Stop implements machine.
func (b *box) Stop(ctx context.Context) error {
	timeout := containerStop
	_, err := b.docker.ContainerStop(ctx, b.id, client.ContainerStopOptions{Timeout: &timeout})
	return err
}

// Kill implements machine. The signal comes from outside of Docker, as a crash would, where that is possible: by root,
// on Docker's own machine.
func (b *box) Kill(ctx context.Context) error {
	found, err := b.docker.ContainerInspect(ctx, b.id, client.ContainerInspectOptions{})
	if err != nil {
		return err
	}
	pid := found.Container.State.Pid
	group, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid)) // unreadable: not this machine's
	if pid > 1 && strings.Contains(string(group), b.id) {
		err = syscall.Kill(pid, syscall.SIGKILL)
	}
	if err != nil || !strings.Contains(string(group), b.id) {
		_, err = b.docker.ContainerKill(ctx, b.id, client.ContainerKillOptions{Signal: "KILL"})
	}
	if err != nil {
		return err
	}
	return await(ctx, "the end of a killed container", func(ctx context.Context) error {
		found, err := b.docker.ContainerInspect(ctx, b.id, client.ContainerInspectOptions{})
		if err == nil && found.Container.State.Running {
			err = errors.New("it runs")
		}
		return err
	})
}

// Start implements machine.
func (b *box) Start(ctx context.Context) error {
	_, err := b.docker.ContainerStart(ctx, b.id, client.ContainerStartOptions{})
	return err
}

// Log implements machine.
func (b *box) Log(ctx context.Context, since time.Time) string {
	out, err := b.docker.ContainerLogs(ctx, b.id, client.ContainerLogsOptions{ShowStdout: true, ShowStderr: true, Since: strconv.FormatInt(since.Unix(), 10)})
	if err != nil {
		return err.Error()
	}
	defer func() { _ = out.Close() }()
	var text bytes.Buffer
	if _, err := stdcopy.StdCopy(&text, &text, out); err != nil {
		return err.Error()
	}
	return text.String()
}

// removeBoxes removes the containers of a run with all they have written.
func removeBoxes(ctx context.Context, docker *client.Client, run string) error {
	ours := make(client.Filters).Add("label", label+"="+run)
	found, err := docker.ContainerList(ctx, client.ContainerListOptions{All: true, Filters: ours})
	if err != nil {
		return err
	}
	for _, c := range found.Items {
		_, removed := docker.ContainerRemove(ctx, c.ID, client.ContainerRemoveOptions{Force: true, RemoveVolumes: true})
		err = errors.Join(err, removed)
	}
	return err
}
