//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/feira-shop/feira/shared/faulttest"
)

// readyTopic is where it is tried whether Kafka works.
const readyTopic = "e2e-ready"

// startKafka starts a broker, or takes the one that is given, and waits until a record went through it.
func (s *stack) startKafka(ctx context.Context) error {
	if len(s.givenKafka) > 0 {
		s.brokers = s.givenKafka
	} else {
		port, err := freePort(ctx)
		if err != nil {
			return err
		}
		s.brokers = []string{net.JoinHostPort("127.0.0.1", strconv.Itoa(port))}
		if err := s.startBroker(ctx, port); err != nil {
			return err
		}
	}
	if err := s.kafkaReady(ctx); err != nil {
		return err
	}
	return s.tellKafka(ctx)
}

func (s *stack) startBroker(ctx context.Context, port int) error {
	if s.kafka == embedded {
		m, err := s.embeddedOn(ctx, "kafka", port, "kafka")
		s.kafkaOn = m
		s.tell("Kafka    is embedded, in a process of its own; what follows is what it resembles")
		return err
	}
	behind, err := freePort(ctx)
	if err != nil {
		return err
	}
	b, image, err := startBox(ctx, s.docker, boxOptions{
		run: s.run, images: s.kafkaImages, port: behind, inside: "9092/tcp", env: brokerEnv(s.brokers[0]),
	})
	if err != nil {
		return err
	}
	s.kafkaOn = b
	// Clients reach it through a network that can be cut.
	s.network, err = faulttest.Open(net.JoinHostPort("127.0.0.1", strconv.Itoa(behind)), s.brokers[0], func(format string, args ...any) {
		fmt.Fprintf(os.Stderr, "e2e: "+format+"\n", args...)
	})
	if err != nil {
		return err
	}
	s.tell("Kafka    image %s", image)
	return nil
}

// brokerEnv configures a broker that is its own controller, as the official image takes it. It says to clients to come
// to the port of this machine, and to itself that it is at localhost.
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
		// The controller takes a broker that was killed for alive until this has passed, and a new one must wait.
		"KAFKA_BROKER_SESSION_TIMEOUT_MS": "4000", "KAFKA_BROKER_HEARTBEAT_INTERVAL_MS": "500",
		"KAFKA_HEAP_OPTS": "-Xms256m -Xmx512m",
	}
}

// kafkaReady waits until a record was produced and consumed. That a port is open proves nothing.
func (s *stack) kafkaReady(ctx context.Context) error {
	return await(ctx, "a record to go through Kafka", func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
		client, err := kgo.NewClient(kgo.SeedBrokers(s.brokers...), kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{readyTopic: {0: kgo.NewOffset().AtEnd().Relative(-1)}}),
			kgo.RecordDeliveryTimeout(3*time.Second))
		if err != nil {
			return err
		}
		defer client.Close()
		admin := kadm.NewClient(client)
		made, err := admin.CreateTopic(ctx, 1, 1, nil, readyTopic)
		if err = errors.Join(err, made.Err); err != nil && !errors.Is(err, kerr.TopicAlreadyExists) {
			return err
		}
		if err := client.ProduceSync(ctx, &kgo.Record{Topic: readyTopic, Value: []byte("ready?")}).FirstErr(); err != nil {
			return err
		}
		for {
			fetched := client.PollFetches(ctx)
			if fetched.NumRecords() > 0 {
				return nil
			}
			if ctx.Err() != nil {
				return errors.Join(ctx.Err(), fetched.Err())
			}
		}
	})
}

// tellKafka has the broker say its version: by what it speaks and, where its log is at hand, by its own words.
func (s *stack) tellKafka(ctx context.Context) error {
	client, err := kgo.NewClient(kgo.SeedBrokers(s.brokers...))
	if err != nil {
		return err
	}
	defer client.Close()
	versions, err := kadm.NewClient(client).ApiVersions(ctx)
	if err != nil {
		return fmt.Errorf("ask Kafka for its version: %w", err)
	}
	for _, b := range versions.Sorted() {
		if b.Err != nil {
			return fmt.Errorf("ask Kafka for its version: %w", b.Err)
		}
		level := "none"
		for _, f := range b.Raw().FinalizedFeatures {
			if f.Name == "metadata.version" {
				level = strconv.Itoa(int(f.MaxVersionLevel))
			}
		}
		s.tell("Kafka    broker %d at %s speaks %s, metadata.version level %s", b.NodeID, strings.Join(s.brokers, ","), b.VersionGuess(), level)
	}
	if _, boxed := s.kafkaOn.(*box); boxed {
		for line := range strings.Lines(s.kafkaOn.Log(ctx, time.Time{})) {
			if _, version, ok := strings.Cut(line, "setting metadata.version to "); ok {
				version, _, _ = strings.Cut(strings.TrimSpace(version), " ")
				s.tell("Kafka    says in its log that it is of %s", version)
				break
			}
		}
	}
	return nil
}

// takenError says that the Kafka that was given is in use.
type takenError struct{ topics []string }

func (e *takenError) Error() string {
	return fmt.Sprintf("the Kafka of E2E_KAFKA has topics named %s. The suite makes topics of these names and deletes them at the end: "+
		"give it a Kafka without them", strings.Join(e.topics, ", "))
}

// unused makes sure that a Kafka that is given has no topics of our names.
func unused(ctx context.Context, brokers []string) error {
	client, err := kgo.NewClient(kgo.SeedBrokers(brokers...))
	if err != nil {
		return err
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	there, err := kadm.NewClient(client).ListTopics(ctx)
	if err != nil {
		return fmt.Errorf("the Kafka of E2E_KAFKA does not answer: %w", err)
	}
	taken := slices.DeleteFunc(topicNames(), func(name string) bool { return !there.Has(name) })
	if len(taken) > 0 {
		return &takenError{taken}
	}
	return nil
}
