//go:build e2e

package compose

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
)

// container is what Docker says of a container of the stack.
type container struct {
	Name         string
	RestartCount int
	State        struct {
		Pid       int
		Status    string
		ExitCode  int
		OOMKilled bool
		StartedAt time.Time
		Health    *struct{ Status string }
	}
	Config struct {
		User   string
		Labels map[string]string
	}
	HostConfig struct {
		SecurityOpt, CapDrop        []string
		ReadonlyRootfs              bool
		Memory, NanoCpus, PidsLimit int64
		LogConfig                   struct{ Config map[string]string }
	}
	Mounts          []struct{ Name string }
	NetworkSettings struct {
		Ports map[string][]struct{ HostIP string }
	}
}

func (c container) healthy() bool {
	return c.State.Status == "running" && c.State.Health != nil && c.State.Health.Status == "healthy"
}

// containers are those of a service, or of all.
func (s *stack) containers(ctx context.Context, services ...string) ([]container, error) {
	ids, err := s.compose(ctx, append([]string{"ps", "--all", "--quiet"}, services...)...)
	if err != nil || strings.TrimSpace(ids) == "" {
		return nil, err
	}
	out, err := s.docker(ctx, append([]string{"container", "inspect"}, strings.Fields(ids)...)...)
	if err != nil {
		return nil, err
	}
	var all []container
	return all, json.Unmarshal([]byte(out), &all)
}

// kill sends SIGKILL to the main process of a container from outside of it, as the kernel does when memory is short.
// (docker kill counts as wanted, and then no restart policy applies.)
func (s *stack) kill(t *testing.T, c container) {
	t.Helper()
	image, err := s.image(t.Context(), "postgres")
	if err == nil {
		_, err = s.docker(t.Context(), "run", "--rm", "--pid=host", "--user=0:0", "--network=none", "--entrypoint=bash", image,
			"-c", fmt.Sprintf("kill -9 %d", c.State.Pid))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// awaitHealthy waits until every container of the services is healthy.
func (s *stack) awaitHealthy(t *testing.T, services ...string) {
	t.Helper()
	eventually(t, fmt.Sprint("healthy: ", services), func() (bool, string) {
		all, err := s.containers(t.Context(), services...)
		if err != nil || len(all) == 0 {
			return false, fmt.Sprint(err)
		}
		for _, c := range all {
			if !c.healthy() {
				return false, fmt.Sprintf("%s: %+v", c.Name, c.State)
			}
		}
		return true, ""
	})
}

// eventually polls until the condition holds; what it says meanwhile is told when it never does.
func eventually(t *testing.T, what string, condition func() (bool, string)) {
	t.Helper()
	within(t, patience, what, condition)
}

func within(t *testing.T, limit time.Duration, what string, condition func() (bool, string)) {
	t.Helper()
	tick := time.NewTicker(250 * time.Millisecond)
	defer tick.Stop()
	deadline := time.NewTimer(limit)
	defer deadline.Stop()
	for {
		ok, said := condition()
		if ok {
			return
		}
		select {
		case <-tick.C:
		case <-deadline.C:
			t.Fatalf("waited %s in vain: %s: %s", limit, what, said)
		case <-t.Context().Done():
			t.Fatal(t.Context().Err())
		}
	}
}

// killed kills a container and waits until its restart policy has brought it back; what the others cannot do without
// must be healthy, too. It gives how long that took.
func (s *stack) killed(t *testing.T, service string) time.Duration {
	t.Helper()
	before, err := s.containers(t.Context(), service)
	if err != nil || len(before) == 0 {
		t.Fatalf("containers of %s: %v", service, err)
	}
	needed := service == "kafka" || service == "postgres"
	began := time.Now()
	s.kill(t, before[0])
	eventually(t, service+" comes back", func() (bool, string) {
		now, err := s.containers(t.Context(), service)
		if err != nil {
			return false, err.Error()
		}
		for _, c := range now {
			if c.Name == before[0].Name {
				back := c.RestartCount > before[0].RestartCount && c.State.Status == "running" && (c.healthy() || !needed)
				return back, fmt.Sprintf("%+v, restarts %d", c.State, c.RestartCount)
			}
		}
		return false, "it is gone"
	})
	return time.Since(began)
}
