package kafka_test

import (
	"net"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/feira-shop/feira/shared/kafka"
)

const (
	topic      = "orders"
	partitions = 3
)

// faulty is a broker whose connections can be cut after a request was carried out and before its answer.
type faulty struct {
	*kfake.Cluster
	cutNext atomic.Bool
}

func newFaulty(t *testing.T, brokers int) *faulty {
	t.Helper()
	f := &faulty{}
	c, err := kfake.NewCluster(kfake.NumBrokers(brokers), kfake.SeedTopics(partitions, topic), kfake.ListenFn(func(network, address string) (net.Listener, error) {
		l, err := net.Listen(network, address)
		return &cutListener{l, f}, err
	}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	f.Cluster = c
	return f
}

func (f *faulty) config() kafka.Config {
	return kafka.Config{Brokers: f.ListenAddrs(), ClientID: "test"}
}

// onProduce calls do while the n-th produce request from now on arrives.
func (f *faulty) onProduce(n int, do func()) {
	f.ControlKey(int16(kmsg.Produce), func(kmsg.Request) (kmsg.Response, error, bool) {
		if n--; n == 0 {
			f.DropControl()
			do()
		}
		return nil, nil, false
	})
}

// cutBefore ends the connection of the n-th produce request from now on; the broker has not seen it.
func (f *faulty) cutBefore(n int) {
	f.ControlKey(int16(kmsg.Produce), func(kmsg.Request) (kmsg.Response, error, bool) {
		n--
		return nil, net.ErrClosed, n == 0
	})
}

// cutAfter ends the connection of the n-th produce request from now on once the broker has carried it out.
func (f *faulty) cutAfter(n int) {
	f.onProduce(n, func() { f.cutNext.Store(true) })
}

type cutListener struct {
	net.Listener
	f *faulty
}

func (l *cutListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	return &cutConn{c, l.f}, err
}

type cutConn struct {
	net.Conn
	f *faulty
}

func (c *cutConn) Write(b []byte) (int, error) {
	if c.f.cutNext.CompareAndSwap(true, false) {
		_ = c.Close()
		return 0, net.ErrClosed
	}
	return c.Conn.Write(b)
}

// read returns the values of a partition, which are positions here.
func read(t *testing.T, f *faulty, partition int32) []int64 {
	t.Helper()
	var values []int64
	for _, r := range records(t, f, partition) {
		n, err := strconv.ParseInt(string(r.Value), 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		values = append(values, n)
	}
	return values
}

// records reads a partition to its end, with another client than the one under test.
func records(t *testing.T, f *faulty, partition int32) []*kgo.Record {
	t.Helper()
	end := f.PartitionInfo(topic, partition).HighWatermark
	if end == 0 {
		return nil
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(f.ListenAddrs()...), kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{
		topic: {partition: kgo.NewOffset().AtStart()},
	}))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	var all []*kgo.Record
	for int64(len(all)) < end {
		fetched := client.PollFetches(t.Context())
		if err := fetched.Err(); err != nil {
			t.Fatal(err)
		}
		all = append(all, fetched.Records()...)
	}
	return all
}
