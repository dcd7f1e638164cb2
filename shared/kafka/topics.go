package kafka

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/IBM/sarama"

	"github.com/feira-shop/feira/shared/events"
)

// Names of topic settings in Kafka.
const (
	cleanupPolicy  = "cleanup.policy"
	retentionMS    = "retention.ms"
	retentionBytes = "retention.bytes"
	timestampType  = "message.timestamp.type"
)

// knownWithin is how long a new topic may take to be known to all brokers.
const knownWithin = 15 * time.Second

// TopicDifference is one setting of a topic that is not as it must be.
type TopicDifference struct {
	Topic, Setting, Have, Want string
}

// TopicsError lists how existing topics differ from what the shop needs. Nothing was changed: a partition count
// cannot be lowered and raising it moves keys, and records that retention has removed do not come back.
type TopicsError struct {
	Differences []TopicDifference
}

func (e *TopicsError) Error() string {
	parts := make([]string, len(e.Differences))
	for i, d := range e.Differences {
		parts[i] = fmt.Sprintf("%s: %s is %s, must be %s", d.Topic, d.Setting, d.Have, d.Want)
	}
	return "kafka: topics are not as they must be (" + strings.Join(parts, "; ") +
		"); correct the settings with kafka-configs, or create the topics anew before anything is published"
}

// EnsureTopics creates the missing topics and checks the settings of those that exist; of these it changes only what
// the options name and can be changed back. It returns when every partition has a leader. Errors: [*ConfigError] for
// options that cannot work on this cluster, [*TopicsError]; anything else is Kafka's and worth a retry.
func EnsureTopics(ctx context.Context, cfg Config, topics []events.Topic, opts EnsureOptions) error {
	client, err := NewClient(cfg)
	if err != nil {
		return fmt.Errorf("kafka: connect to %s: %w", strings.Join(cfg.Brokers, ","), err)
	}
	defer func() { _ = client.Close() }()
	admin, err := sarama.NewClusterAdminFromClient(client)
	if err != nil {
		return fmt.Errorf("kafka: find the controller: %w", err)
	}
	e := ensuring{client: client, admin: admin, opts: opts}
	if e.durability, err = opts.durability(len(client.Brokers())); err != nil {
		return err
	}
	var diff []TopicDifference
	for _, t := range topics {
		if err := ctx.Err(); err != nil {
			return err
		}
		d, err := e.topic(ctx, opts.declared(t))
		if err != nil {
			return fmt.Errorf("kafka: topic %s: %w", t.Name, err)
		}
		diff = append(diff, d...)
	}
	if len(diff) > 0 {
		return &TopicsError{Differences: diff}
	}
	return nil
}

// ensuring is one call of [EnsureTopics].
type ensuring struct {
	client sarama.Client
	admin  sarama.ClusterAdmin
	opts   EnsureOptions
	durability
}

func (e *ensuring) topic(ctx context.Context, t events.Topic) ([]TopicDifference, error) {
	found, err := describe(e.admin, t.Name)
	switch {
	case err != nil:
		return nil, err
	case found != nil:
		return e.existing(t, found)
	case e.opts.CheckOnly:
		return []TopicDifference{{t.Name, "topic", "missing", "there (feira migrate creates it)"}}, nil
	}
	err = e.admin.CreateTopic(t.Name, &sarama.TopicDetail{
		NumPartitions: t.Partitions, ReplicationFactor: e.copies, ConfigEntries: e.settings(t),
	}, false)
	// Another process may have been faster; what it made is checked like any other.
	if err != nil && !errors.Is(err, sarama.ErrTopicAlreadyExists) {
		return nil, err
	}
	if err == nil {
		e.opts.report("made %s: %d partitions, copies %d, in sync at least %d", t.Name, t.Partitions, e.copies, e.inSync)
	}
	return e.await(ctx, t)
}

// await waits until a new topic can be written, and is known with its settings to the broker that is asked: brokers
// hear of a topic one after the other, after its creation was answered. What differs then is how another process made
// it.
func (e *ensuring) await(ctx context.Context, t events.Topic) (diff []TopicDifference, err error) {
	limit, cancel := context.WithTimeout(ctx, knownWithin)
	defer cancel()
	for {
		if err = e.leaders(t); err == nil {
			var found *sarama.TopicMetadata
			switch found, err = describe(e.admin, t.Name); {
			case err == nil && found == nil:
				err = sarama.ErrUnknownTopicOrPartition
			case err == nil:
				diff, err = compare(e.admin, t, found)
			}
		}
		if err == nil && len(diff) == 0 {
			return nil, nil
		}
		select {
		case <-limit.Done():
			if err != nil {
				err = fmt.Errorf("created, but not ready: %w", errors.Join(ctx.Err(), err))
			}
			return diff, err
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// leaders fails while a partition has no leader.
func (e *ensuring) leaders(t events.Topic) error {
	if err := e.client.RefreshMetadata(t.Name); err != nil {
		return err
	}
	writable, err := e.client.WritablePartitions(t.Name)
	if err == nil && len(writable) < int(t.Partitions) {
		err = sarama.ErrLeaderNotAvailable
	}
	return err
}

func (e *ensuring) existing(t events.Topic, found *sarama.TopicMetadata) ([]TopicDifference, error) {
	diff, err := compare(e.admin, t, found)
	if err != nil {
		return nil, err
	}
	wishes := e.opts.wishes(t, found)
	if len(wishes) == 0 && !e.opts.CheckOnly {
		err = e.opts.adjust(e.admin, t)
	}
	return append(diff, wishes...), err
}

// settings are all settings of a new topic.
func (d durability) settings(t events.Topic) map[string]*string {
	all := settings(t)
	inSync, never := strconv.Itoa(int(d.inSync)), "false"
	all[minInSync] = &inSync
	all[uncleanLeader] = &never // a leader that lacks acknowledged events would lose them for everybody
	return all
}

// describe returns nil for a topic that does not exist.
func describe(admin sarama.ClusterAdmin, name string) (*sarama.TopicMetadata, error) {
	metas, err := admin.DescribeTopics([]string{name})
	switch {
	case err != nil:
		return nil, err
	case len(metas) != 1:
		return nil, fmt.Errorf("asked for one topic, metadata has %d", len(metas))
	case errors.Is(metas[0].Err, sarama.ErrUnknownTopicOrPartition):
		return nil, nil // absence is an answer here, not a failure
	case metas[0].Err != sarama.ErrNoError:
		return nil, metas[0].Err
	}
	return metas[0], nil
}

// settings are what the topic is declared as, as Kafka names it.
func settings(t events.Topic) map[string]*string {
	policy, stamp := "delete", "CreateTime"
	if t.Compacted {
		policy = "compact"
	}
	if t.LogAppendTime {
		stamp = "LogAppendTime"
	}
	keep, forever := strconv.FormatInt(t.Retention.Milliseconds(), 10), "-1"
	if t.Retention == events.Forever {
		keep = forever
	}
	return map[string]*string{cleanupPolicy: &policy, timestampType: &stamp, retentionMS: &keep, retentionBytes: &forever}
}

// compare checks what would break promises. How long a topic that is not kept for ever keeps its records is a
// matter of operation and not checked.
func compare(admin sarama.ClusterAdmin, t events.Topic, found *sarama.TopicMetadata) ([]TopicDifference, error) {
	var diff []TopicDifference
	if n := len(found.Partitions); n != int(t.Partitions) {
		diff = append(diff, TopicDifference{t.Name, "number of partitions", strconv.Itoa(n), strconv.Itoa(int(t.Partitions))})
	}
	have, err := readSettings(admin, sarama.TopicResource, t.Name, cleanupPolicy, timestampType, retentionMS, retentionBytes, uncleanLeader)
	if err != nil {
		return nil, err
	}
	check := []string{cleanupPolicy, timestampType}
	if t.Retention == events.Forever && !t.Compacted {
		check = append(check, retentionMS, retentionBytes)
	}
	want := settings(t)
	for _, name := range check {
		if have[name] != *want[name] {
			diff = append(diff, TopicDifference{t.Name, name, have[name], *want[name]})
		}
	}
	if have[uncleanLeader] == "true" {
		diff = append(diff, TopicDifference{t.Name, uncleanLeader, "true", "false"})
	}
	return diff, nil
}

// readSettings reads settings of a topic or a broker as they are in effect. Errors: a [sarama.KError].
func readSettings(admin sarama.ClusterAdmin, kind sarama.ConfigResourceType, name string, settings ...string) (map[string]string, error) {
	resources, err := admin.DescribeConfigs([]*sarama.ConfigResource{{Type: kind, Name: name, ConfigNames: settings}}, sarama.DescribeConfigsOptions{})
	if err != nil {
		return nil, err
	}
	have := map[string]string{}
	for _, r := range resources {
		if r.ErrorCode != sarama.ErrNoError {
			return nil, fmt.Errorf("read the settings: %w", r.ErrorCode)
		}
		for _, e := range r.Configs {
			have[e.Name] = e.Value
		}
	}
	return have, nil
}
