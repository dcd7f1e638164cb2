package kafka

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/IBM/sarama"

	"github.com/feira-shop/feira/shared/events"
)

// Names of settings that only the inspection reads.
const (
	minInSync      = "min.insync.replicas"
	uncleanLeader  = "unclean.leader.election.enable"
	maxMessage     = "max.message.bytes"
	autoCreate     = "auto.create.topics.enable"
	offsetsCopies  = "offsets.topic.replication.factor"
	offsetsTopic   = "__consumer_offsets"
	describeConfig = "Describe and DescribeConfigs on the topics, and DescribeConfigs on the cluster"
)

// Inspect looks for what is unsafe in a cluster and in the connection to it. It changes nothing. An error means that it
// could not look; ctx is consulted between requests.
func Inspect(ctx context.Context, cfg Config, topics []events.Topic) ([]Risk, error) {
	client, err := NewClient(cfg)
	if err != nil {
		return nil, fmt.Errorf("kafka: connect to %s: %w", strings.Join(cfg.Brokers, ","), err)
	}
	defer func() { _ = client.Close() }()
	admin, err := sarama.NewClusterAdminFromClient(client)
	if err != nil {
		return nil, fmt.Errorf("kafka: find the controller: %w", err)
	}
	c := cluster{tls: cfg.TLS, sasl: cfg.SASL, addresses: slices.Clone(cfg.Brokers)}
	for _, look := range []func() error{
		func() error { return c.lookAtBrokers(client, admin) },
		func() error { return c.lookAtTopics(admin, topics) },
		func() error { return c.lookAtOffsets(admin) },
	} {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if err := look(); err != nil {
			return nil, fmt.Errorf("kafka: inspect: %w", err)
		}
	}
	return c.risks(), nil
}

// cluster is what an inspection has seen.
type cluster struct {
	tls       TLS
	sasl      SASL
	addresses []string // as given and as the brokers give them
	brokers   []seenBroker
	topics    []seenTopic
	offsets   int      // copies of the consumer groups' topic; 0: unknown
	closed    []string // what this user may not look at
}

// seenBroker is a broker with its settings.
type seenBroker struct {
	id       int32
	settings map[string]string
}

// seenTopic is a topic as it is beside how it must be.
type seenTopic struct {
	want     events.Topic
	copies   int // of the partition that has fewest; 0: the topic is missing
	settings map[string]string
}

func (c *cluster) lookAtBrokers(client sarama.Client, admin sarama.ClusterAdmin) error {
	for _, b := range client.Brokers() {
		c.addresses = append(c.addresses, b.Addr())
		settings, err := c.look(admin, sarama.BrokerResource, strconv.Itoa(int(b.ID())), autoCreate, offsetsCopies)
		if err != nil {
			return fmt.Errorf("settings of broker %d: %w", b.ID(), err)
		}
		c.brokers = append(c.brokers, seenBroker{id: b.ID(), settings: settings})
	}
	slices.Sort(c.addresses)
	c.addresses = slices.Compact(c.addresses)
	slices.SortFunc(c.brokers, func(a, b seenBroker) int { return int(a.id - b.id) })
	return nil
}

func (c *cluster) lookAtTopics(admin sarama.ClusterAdmin, topics []events.Topic) error {
	for _, t := range topics {
		seen := seenTopic{want: t}
		found, err := describe(admin, t.Name)
		if errors.Is(err, sarama.ErrTopicAuthorizationFailed) {
			c.closed = append(c.closed, "topic "+t.Name)
			continue
		}
		if err != nil {
			return fmt.Errorf("topic %s: %w", t.Name, err)
		}
		if found != nil {
			seen.copies = copies(found)
			seen.settings, err = c.look(admin, sarama.TopicResource, t.Name, cleanupPolicy, retentionMS, retentionBytes, minInSync, uncleanLeader, maxMessage)
			if err != nil {
				return fmt.Errorf("settings of topic %s: %w", t.Name, err)
			}
		}
		c.topics = append(c.topics, seen)
	}
	return nil
}

// lookAtOffsets counts the copies of the groups' topic, or of what it will have when the first group makes it.
func (c *cluster) lookAtOffsets(admin sarama.ClusterAdmin) error {
	found, err := describe(admin, offsetsTopic)
	switch {
	case errors.Is(err, sarama.ErrTopicAuthorizationFailed): // the brokers' setting says it too
	case err != nil:
		return fmt.Errorf("topic %s: %w", offsetsTopic, err)
	case found != nil:
		c.offsets = copies(found)
		return nil
	}
	for _, b := range c.brokers {
		if n, err := strconv.Atoi(b.settings[offsetsCopies]); err == nil && (c.offsets == 0 || n < c.offsets) {
			c.offsets = n
		}
	}
	return nil
}

// look reads settings; those that this user may not read are none.
func (c *cluster) look(admin sarama.ClusterAdmin, kind sarama.ConfigResourceType, name string, settings ...string) (map[string]string, error) {
	have, err := readSettings(admin, kind, name, settings...)
	if errors.Is(err, sarama.ErrClusterAuthorizationFailed) || errors.Is(err, sarama.ErrTopicAuthorizationFailed) {
		what := "topic " + name
		if kind == sarama.BrokerResource {
			what = "broker " + name
		}
		c.closed = append(c.closed, what)
		return nil, nil
	}
	return have, err
}

// copies counts the replicas of the partition that has fewest.
func copies(t *sarama.TopicMetadata) int {
	n := 0
	for i, p := range t.Partitions {
		if i == 0 || len(p.Replicas) < n {
			n = len(p.Replicas)
		}
	}
	return n
}
