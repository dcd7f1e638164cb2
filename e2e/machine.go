//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
	"time"
)

// machine is what Kafka or Postgres runs on: a container, or a process. Its address and its data stay.
type machine interface {
	Stop(ctx context.Context) error // as an operator does
	Kill(ctx context.Context) error // SIGKILL to the main process: nothing has the time to clean up
	Start(ctx context.Context) error
	Log(ctx context.Context, since time.Time) string // what it said
}

// patience is how long a test waits for what must happen. It is no measure of speed: a loaded machine may need it.
const patience = 90 * time.Second

// errHopeless ends await at once.
var errHopeless = errors.New("there is nothing to wait for")

// await asks again and again until check has nothing to complain about, and says what it waited for in vain.
func await(ctx context.Context, what string, check func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		err := check(ctx)
		if err == nil {
			return nil
		}
		if errors.Is(err, errHopeless) {
			return fmt.Errorf("waiting for %s: %w", what, err)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("in vain waited for %s: %w", what, err)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// Ports of ours lie below those that the system gives to outgoing connections: a port that is given up for a moment,
// because its owner was killed, is then not taken by a client of somebody else.
const lowestPort, highestPort = 20000, 30000

// givenPorts are those that freePort has found: they may be free until their owner starts.
var givenPorts sync.Map

// freePort finds a port of 127.0.0.1 that can be listened on, and finds none twice.
func freePort(ctx context.Context) (int, error) {
	var err error
	for range 100 {
		port := lowestPort + rand.IntN(highestPort-lowestPort)
		if _, given := givenPorts.LoadOrStore(port, true); given {
			continue
		}
		var l net.Listener
		if l, err = (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port))); err == nil {
			return port, l.Close()
		}
	}
	return 0, errors.Join(errors.New("no free port"), err)
}
