package kafka

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"

	"github.com/twmb/franz-go/pkg/kfake"
)

// EmbeddedOptions configure the broker that runs in this process.
type EmbeddedOptions struct {
	// Listen is the address 127.0.0.1:port; "" or port 0 takes any free port. The broker is for this machine:
	// other hosts are refused.
	Listen string
	// Dir keeps topics, records and group offsets between runs, also after SIGKILL; "" keeps all in memory.
	Dir string
	// Sync has each produce wait for the disk (0.9 instead of 0.07 ms), which matters when power may fail.
	Sync bool
}

// Embedded is a Kafka broker in this process, for the demo and for tests.
type Embedded struct {
	cluster *kfake.Cluster
	brokers []string
	lock    *os.File
	once    sync.Once
}

// AddressInUseError says that something else listens where the embedded broker was to listen.
type AddressInUseError struct {
	Address string
}

func (e *AddressInUseError) Error() string {
	return fmt.Sprintf("kafka: cannot listen on %s, another program does; stop it or choose another address", e.Address)
}

// DataDirInUseError says that another broker, perhaps of another process, works on the data directory.
type DataDirInUseError struct {
	Dir string
}

func (e *DataDirInUseError) Error() string {
	return fmt.Sprintf("kafka: the data directory %s is in use by another process; stop that one or choose another directory", e.Dir)
}

// StartEmbedded starts a broker. Topics are never created by use, only by [EnsureTopics]. Errors:
// [*AddressInUseError], [*DataDirInUseError].
func StartEmbedded(ctx context.Context, opts EmbeddedOptions) (*Embedded, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	port, err := loopbackPort(opts.Listen)
	if err != nil {
		return nil, err
	}
	e := &Embedded{}
	kopts := []kfake.Opt{kfake.Ports(port), kfake.ClusterID("feira")}
	if opts.Dir != "" {
		if e.lock, err = lockDir(opts.Dir); err != nil {
			return nil, err
		}
		kopts = append(kopts, kfake.DataDir(filepath.Join(opts.Dir, "log")))
	}
	if opts.Sync {
		kopts = append(kopts, kfake.SyncWrites())
	}
	if e.cluster, err = kfake.NewCluster(kopts...); err != nil {
		e.unlock()
		if errors.Is(err, syscall.EADDRINUSE) {
			return nil, &AddressInUseError{Address: opts.Listen}
		}
		return nil, fmt.Errorf("kafka: start the embedded broker: %w", err)
	}
	e.brokers = e.cluster.ListenAddrs()
	return e, nil
}

// Brokers are the addresses for [Config].
func (e *Embedded) Brokers() []string { return e.brokers }

// Config is the configuration of a client of this broker.
func (e *Embedded) Config(clientID string) Config {
	return Config{Brokers: e.brokers, ClientID: clientID}
}

// Cluster gives access to fault injection.
func (e *Embedded) Cluster() *kfake.Cluster { return e.cluster }

// Close saves everything and stops the broker. It may be called more than once.
func (e *Embedded) Close() {
	e.once.Do(func() {
		e.cluster.Close()
		e.unlock()
	})
}

func (e *Embedded) unlock() {
	if e.lock != nil {
		_ = e.lock.Close() // which releases the lock
	}
}

func loopbackPort(listen string) (int, error) {
	if listen == "" {
		return 0, nil
	}
	host, p, err := net.SplitHostPort(listen)
	if err != nil {
		return 0, fmt.Errorf("kafka: listen address %q: expected 127.0.0.1:port: %w", listen, err)
	}
	if host != "127.0.0.1" && host != "localhost" {
		return 0, fmt.Errorf("kafka: listen address %q: the embedded broker serves this machine only, use 127.0.0.1:%s", listen, p)
	}
	port, err := strconv.ParseUint(p, 10, 16)
	if err != nil {
		return 0, fmt.Errorf("kafka: listen address %q: the port must be between 0 and 65535", listen)
	}
	return int(port), nil
}

// lockDir makes this process the only user of dir. The lock ends with the process, however that ends.
func lockDir(dir string) (*os.File, error) {
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return nil, fmt.Errorf("kafka: data directory: %w", err)
	}
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600) //nolint:gosec // the caller's own directory
	if err != nil {
		return nil, fmt.Errorf("kafka: data directory: %w", err)
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err == nil {
		return f, nil
	}
	_ = f.Close()
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, &DataDirInUseError{Dir: dir}
	}
	return nil, fmt.Errorf("kafka: lock the data directory %s: %w", dir, err)
}
