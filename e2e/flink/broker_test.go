//go:build e2e

package flink

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/network"
	"github.com/moby/moby/client"
	"github.com/testcontainers/testcontainers-go"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/kafka"
)

// The topics of Flink's answers.
var (
	spendTopic      = events.Topic{Name: "flink-spend", Partitions: 6, Retention: events.Forever}
	duplicatesTopic = events.Topic{Name: "flink-duplicates", Partitions: 6, Retention: events.Forever}
)

// startWithin bounds the start of the broker, whose image may be fetched.
const startWithin = 5 * time.Minute

// startBroker starts Kafka in a container, with the shop's topics and Flink's. It ends with the test.
func startBroker(t *testing.T) (address string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), startWithin)
	defer cancel()
	image, port := imageOf(ctx, t), freePort(t)
	address = net.JoinHostPort("127.0.0.1", port)
	inside := network.MustParsePort("9092/tcp")
	c, err := testcontainers.Run(ctx, image, testcontainers.WithExposedPorts("9092/tcp"), testcontainers.WithEnv(brokerEnv(address)),
		testcontainers.WithHostConfigModifier(func(h *container.HostConfig) {
			h.PortBindings = network.PortMap{inside: {{HostIP: netip.MustParseAddr("127.0.0.1"), HostPort: port}}}
		}))
	testcontainers.CleanupContainer(t, c)
	if err != nil {
		t.Fatalf("start a broker of image %s: %v", image, err)
	}
	topics := append(events.Topics(), spendTopic, duplicatesTopic)
	for {
		err := kafka.EnsureTopics(ctx, kafka.Config{Brokers: []string{address}, ClientID: "flink-test"}, topics, kafka.EnsureOptions{})
		if err == nil {
			t.Logf("Kafka of image %s", image)
			return address
		}
		select {
		case <-ctx.Done():
			t.Fatalf("waited in vain for the broker: %v", err)
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// imageOf is the image that was asked for, or one that is on the machine, or the official one, which is fetched.
func imageOf(ctx context.Context, t *testing.T) string {
	t.Helper()
	docker, err := testcontainers.NewDockerClientWithOpts(ctx)
	if err == nil {
		_, err = docker.Client.Ping(ctx, client.PingOptions{})
	}
	if err != nil {
		t.Fatalf("this test runs Kafka in a container, and Docker does not answer: start it, or point DOCKER_HOST at one that runs: %v", err)
	}
	if image := os.Getenv("KAFKA_IMAGE"); image != "" {
		return image
	}
	version := cmp.Or(os.Getenv("KAFKA"), "4.4.0")
	if built := "feira-kafka:" + version; func() bool { _, err := docker.ImageInspect(ctx, built); return err == nil }() {
		return built
	}
	return "apache/kafka:" + version
}

// brokerEnv configures one broker, its own controller, as the official image takes it.
func brokerEnv(address string) map[string]string {
	return map[string]string{
		"KAFKA_NODE_ID": "1", "KAFKA_PROCESS_ROLES": "broker,controller",
		"KAFKA_LISTENERS":                      "HOST://:9092,BROKER://:9093,CONTROLLER://:9094",
		"KAFKA_ADVERTISED_LISTENERS":           "HOST://" + address + ",BROKER://localhost:9093",
		"KAFKA_LISTENER_SECURITY_PROTOCOL_MAP": "HOST:PLAINTEXT,BROKER:PLAINTEXT,CONTROLLER:PLAINTEXT",
		"KAFKA_INTER_BROKER_LISTENER_NAME":     "BROKER", "KAFKA_CONTROLLER_LISTENER_NAMES": "CONTROLLER",
		"KAFKA_CONTROLLER_QUORUM_VOTERS":                         "1@localhost:9094",
		"KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR":                 "1",
		"KAFKA_TRANSACTION_STATE_LOG_MIN_ISR":                    "1",
		"KAFKA_TRANSACTION_STATE_LOG_REPLICATION_FACTOR":         "1",
		"KAFKA_SHARE_COORDINATOR_STATE_TOPIC_REPLICATION_FACTOR": "1",
		"KAFKA_SHARE_COORDINATOR_STATE_TOPIC_MIN_ISR":            "1",
		"KAFKA_GROUP_INITIAL_REBALANCE_DELAY_MS":                 "0",
		"KAFKA_AUTO_CREATE_TOPICS_ENABLE":                        "false",
		"KAFKA_HEAP_OPTS":                                        "-Xms256m -Xmx512m",
	}
}

func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
}

// ends are the end offsets of a topic's partitions; committed leaves out what transactions that are open have written.
func ends(ctx context.Context, address, topic string, committed bool) (map[int32]int64, error) {
	client, err := kgo.NewClient(kgo.SeedBrokers(address))
	if err != nil {
		return nil, err
	}
	defer client.Close()
	admin := kadm.NewClient(client)
	list := admin.ListEndOffsets
	if committed {
		list = admin.ListCommittedOffsets
	}
	listed, err := list(ctx, topic)
	if err == nil {
		err = listed.Error()
	}
	if err != nil {
		return nil, fmt.Errorf("end offsets of topic %s: %w", topic, err)
	}
	at := map[int32]int64{}
	listed.Each(func(o kadm.ListedOffset) { at[o.Partition] = o.Offset })
	return at, nil
}

// read hands out all committed records of a topic, up to its present end.
func read(ctx context.Context, address, topic string, each func(*kgo.Record) error) error {
	until, err := ends(ctx, address, topic, true)
	if err != nil {
		return err
	}
	from := map[int32]kgo.Offset{}
	for p, end := range until {
		if end > 0 {
			from[p] = kgo.NewOffset().AtStart()
		}
	}
	// The last record of a transaction is its marker, which is only handed out to those who keep control records.
	client, err := kgo.NewClient(kgo.SeedBrokers(address), kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: from}),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.KeepControlRecords())
	if err != nil {
		return err
	}
	defer client.Close()
	for len(from) > 0 {
		fetched := client.PollFetches(ctx)
		if err := fetched.Err(); err != nil {
			return fmt.Errorf("read topic %s: %w", topic, err)
		}
		fetched.EachRecord(func(r *kgo.Record) {
			if r.Offset+1 >= until[r.Partition] {
				delete(from, r.Partition)
			}
			if !r.Attrs.IsControl() && err == nil {
				err = each(r)
			}
		})
		if err != nil {
			return fmt.Errorf("read topic %s: %w", topic, err)
		}
	}
	return nil
}
