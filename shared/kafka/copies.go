package kafka

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/IBM/sarama"

	"github.com/feira-shop/feira/shared/events"
)

// The settings of topics, as feira migrate calls them.
const (
	flagReplication = "--replication (FEIRA_KAFKA_REPLICATION)"
	flagMinInSync   = "--min-insync (FEIRA_KAFKA_MIN_INSYNC)"
	flagRetention   = "--clicks-retention (FEIRA_CLICKS_RETENTION)"
)

// shortestRetention leaves time to find out that a consumer stands still.
const shortestRetention = time.Hour

// EnsureOptions say how [EnsureTopics] creates topics. Zero values are safe on any cluster.
type EnsureOptions struct {
	// Replication is the number of copies of each partition; 0: three, or as many as there are brokers.
	Replication int16
	// MinInSync is how many copies must have an event before it is acknowledged; 0: one less than there are copies, so
	// that one broker may be away, and at least 1.
	MinInSync int16
	// Retention is how long topics that are not kept for ever keep their records, at least an hour; 0: as declared.
	Retention time.Duration
	CheckOnly bool         // a missing topic is a difference instead of being created, and nothing is changed
	Report    func(string) // is told of each topic that was made or changed; nil: nobody
}

// durability is how a new topic is replicated.
type durability struct {
	copies, inSync int16
}

// durability settles what the options leave open. Errors: [*ConfigError].
func (o EnsureOptions) durability(brokers int) (durability, error) {
	var problems []error
	d := durability{copies: int16(min(enoughCopies, max(brokers, 1)))}
	switch {
	case o.Replication < 0 || int(o.Replication) > brokers:
		problems = append(problems, fmt.Errorf("%s is %d, and %d brokers answer; expected 1 to %d, or 0 to choose", flagReplication, o.Replication, brokers, brokers))
	case o.Replication > 0:
		d.copies = o.Replication
	}
	d.inSync = max(d.copies-1, 1)
	switch {
	case o.MinInSync < 0 || o.MinInSync > d.copies:
		problems = append(problems, fmt.Errorf("%s is %d, and there will be %d copies; expected 1 to %d, best one less than there are copies", flagMinInSync, o.MinInSync, d.copies, d.copies))
	case o.MinInSync > 0:
		d.inSync = o.MinInSync
	}
	if o.Retention != 0 && o.Retention < shortestRetention {
		problems = append(problems, fmt.Errorf("%s is %s; expected at least %s, or 0 for the default", flagRetention, o.Retention, shortestRetention))
	}
	return d, wrong(problems)
}

// declared is the topic with the options' retention.
func (o EnsureOptions) declared(t events.Topic) events.Topic {
	if o.Retention != 0 && t.Retention != events.Forever {
		t.Retention = o.Retention
	}
	return t
}

func (o EnsureOptions) report(format string, args ...any) {
	if o.Report != nil {
		o.Report(fmt.Sprintf(format, args...))
	}
}

// wishes are differences between an existing topic and what was asked for by name. What the options leave open is as it
// was made.
func (o EnsureOptions) wishes(t events.Topic, found *sarama.TopicMetadata) []TopicDifference {
	var diff []TopicDifference
	have := copies(found)
	if o.Replication != 0 && have != int(o.Replication) {
		diff = append(diff, TopicDifference{t.Name, "replication factor", strconv.Itoa(have), strconv.Itoa(int(o.Replication))})
	}
	if have < int(o.MinInSync) {
		diff = append(diff, TopicDifference{t.Name, "replication factor", strconv.Itoa(have), fmt.Sprintf("at least %d for %s", o.MinInSync, flagMinInSync)})
	}
	return diff
}

// adjust changes settings of an existing topic that were asked for by name, and can be changed back.
func (o EnsureOptions) adjust(admin sarama.ClusterAdmin, t events.Topic) error {
	want := map[string]string{}
	if o.MinInSync != 0 {
		want[minInSync] = strconv.Itoa(int(o.MinInSync))
	}
	if o.Retention != 0 && t.Retention != events.Forever {
		want[retentionMS] = *settings(t)[retentionMS]
	}
	have, err := readSettings(admin, sarama.TopicResource, t.Name, minInSync, retentionMS)
	if err != nil {
		return err
	}
	var errs []error
	for name, value := range want {
		if have[name] == value {
			continue
		}
		change := map[string]sarama.IncrementalAlterConfigsEntry{name: {Operation: sarama.IncrementalAlterConfigsOperationSet, Value: &value}}
		if err := admin.IncrementalAlterConfig(sarama.TopicResource, t.Name, change, false); err != nil {
			errs = append(errs, fmt.Errorf("set %s to %s: %w", name, value, err))
			continue
		}
		o.report("changed %s: %s was %s and is %s", t.Name, name, have[name], value)
	}
	return errors.Join(errs...)
}
