//go:build e2e

package compose

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
)

// remove leaves nothing of the project: no container or volume, and no network that the engine can remove.
func (s *stack) remove(ctx context.Context) error {
	return s.end(ctx, []string{"--time", "5"}, "--profile", "*", "down", "--volumes", "--remove-orphans")
}

// end stops the containers, by docker stop with flags, and runs docker compose with args that take the stack down.
//
// Engine 20.10 does not count well how many endpoints a network has when many containers of it end at once: it may lock
// up for ever, or go on counting one that is gone. So they end one after the other first, the newest first, which are
// those that no other depends on. (COMPOSE_PARALLEL_LIMIT does not concern down.)
func (s *stack) end(ctx context.Context, flags []string, args ...string) error {
	running, err := s.labelled(ctx)
	if err != nil {
		return err
	}
	for _, id := range running {
		if _, err := s.docker(ctx, slices.Concat([]string{"stop"}, flags, []string{id})...); err != nil && !strings.Contains(err.Error(), "No such container") { // it has ended by itself
			return err
		}
	}
	_, err = s.compose(ctx, args...)
	if err == nil || !strings.Contains(err.Error(), "has active endpoints") {
		return err
	}
	// The engine's count is wrong if no container is left. Then the network stays, and the next up uses it again.
	left, unknown := s.labelled(ctx, "--all")
	if unknown != nil || len(left) > 0 {
		return errors.Join(err, unknown, fmt.Errorf("of the project there are %d containers", len(left)))
	}
	fmt.Fprintln(os.Stderr, "compose: no container is left, but the engine keeps a network:", err)
	return nil
}

// labelled are the ids of the project's containers: of those that run, or of all.
func (s *stack) labelled(ctx context.Context, flags ...string) ([]string, error) {
	ids, err := s.docker(ctx, append([]string{"ps", "--quiet", "--filter", "label=com.docker.compose.project=" + project}, flags...)...)
	return strings.Fields(ids), err
}
