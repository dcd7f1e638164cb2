package kafka_test

import (
	"errors"
	"net"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/IBM/sarama"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/kafka"
	"github.com/feira-shop/feira/shared/kafka/kafkatest"
)

func TestTopicsAreCreatedAsTheyMustBe(t *testing.T) {
	t.Parallel()
	b := kafkatest.New(t, events.Topics()...)
	admin := adminTo(t, b.Config("admin"))
	for _, topic := range events.Topics() {
		metas, err := admin.DescribeTopics([]string{topic.Name})
		if err != nil {
			t.Fatal(err)
		}
		if n := len(metas[0].Partitions); n != int(topic.Partitions) {
			t.Errorf("%s has %d partitions, want %d", topic.Name, n, topic.Partitions)
		}
	}
	for topic, want := range map[string]map[string]string{
		"orders":          {"retention.ms": "-1", "cleanup.policy": "delete", "message.timestamp.type": "CreateTime"},
		"catalog":         {"cleanup.policy": "compact"},
		"eventos-usuario": {"retention.ms": "604800000", "message.timestamp.type": "LogAppendTime"},
	} {
		for name, value := range want {
			if have := setting(t, admin, topic, name); have != value {
				t.Errorf("%s: %s is %s, want %s", topic, name, have, value)
			}
		}
	}
	if err := kafka.EnsureTopics(t.Context(), b.Config(""), events.Topics(), kafka.EnsureOptions{CheckOnly: true}); err != nil {
		t.Errorf("second call: %v", err)
	}
}

func TestDifferencesAreNamed(t *testing.T) {
	t.Parallel()
	b := kafkatest.New(t)
	for name, c := range map[string]struct {
		partitions int32
		configs    map[string]string
		want       events.Topic
		setting    string
	}{
		"partitions": {3, map[string]string{"retention.ms": "-1"}, events.Orders, "number of partitions"},
		"retention":  {6, map[string]string{"retention.ms": "604800000"}, events.Orders, "retention.ms"},
		"bytes":      {6, map[string]string{"retention.ms": "-1", "retention.bytes": "1000000"}, events.Orders, "retention.bytes"},
		"cleanup":    {6, map[string]string{"retention.ms": "-1", "cleanup.policy": "compact"}, events.Orders, "cleanup.policy"},
		"compaction": {6, nil, events.Catalog, "cleanup.policy"},
		"timestamps": {3, nil, events.Clicks, "message.timestamp.type"},
		"elections":  {6, map[string]string{"retention.ms": "-1", "unclean.leader.election.enable": "true"}, events.Orders, "unclean.leader.election.enable"},
	} {
		topic := c.want
		topic.Name = name
		if err := b.Cluster().CreateTopic(name, c.partitions, c.configs); err != nil {
			t.Fatal(err)
		}
		err := kafka.EnsureTopics(t.Context(), b.Config(""), []events.Topic{topic}, kafka.EnsureOptions{})
		var differ *kafka.TopicsError
		if !errors.As(err, &differ) {
			t.Errorf("%s: got %v, want a TopicsError", name, err)
			continue
		}
		if len(differ.Differences) != 1 || differ.Differences[0].Setting != c.setting || differ.Differences[0].Topic != name {
			t.Errorf("%s: named %+v, want %s", name, differ.Differences, c.setting)
		}
	}
	err := kafka.EnsureTopics(t.Context(), b.Config(""), []events.Topic{events.Fraud}, kafka.EnsureOptions{CheckOnly: true})
	var differ *kafka.TopicsError
	if !errors.As(err, &differ) || differ.Differences[0].Have != "missing" {
		t.Errorf("missing topic: got %v", err)
	}
}

// Brokers hear of a new topic one after the other, so the one that is asked may not know it yet.
func TestANewTopicIsWaitedFor(t *testing.T) {
	t.Parallel()
	for name, key := range map[string]kmsg.Key{"topic": kmsg.Metadata, "settings": kmsg.DescribeConfigs} {
		b := kafkatest.New(t)
		var made atomic.Bool
		b.Cluster().ControlKey(int16(kmsg.CreateTopics), func(kmsg.Request) (kmsg.Response, error, bool) {
			made.Store(true)
			return nil, nil, false
		})
		asked, late := 0, 0
		b.Cluster().ControlKey(int16(key), func(r kmsg.Request) (kmsg.Response, error, bool) {
			b.Cluster().KeepControl()
			if !made.Load() || late == 3 {
				return nil, nil, false
			}
			switch r := r.(type) {
			case *kmsg.MetadataRequest:
				if asked++; len(r.Topics) != 1 || asked == 1 { // not to the one who waits for leaders
					return nil, nil, false
				}
				answer := r.ResponseKind().(*kmsg.MetadataResponse)
				broker := kmsg.NewMetadataResponseBroker()
				host, port, _ := net.SplitHostPort(b.Brokers()[0])
				number, _ := strconv.Atoi(port)
				broker.Host, broker.Port = host, int32(number)
				unknown := kmsg.NewMetadataResponseTopic()
				unknown.Topic, unknown.ErrorCode = r.Topics[0].Topic, kerr.UnknownTopicOrPartition.Code
				answer.Brokers, answer.Topics = append(answer.Brokers, broker), append(answer.Topics, unknown)
				late++
				return answer, nil, true
			case *kmsg.DescribeConfigsRequest:
				answer := r.ResponseKind().(*kmsg.DescribeConfigsResponse)
				unknown := kmsg.NewDescribeConfigsResponseResource()
				unknown.ResourceName, unknown.ResourceType, unknown.ErrorCode = r.Resources[0].ResourceName, r.Resources[0].ResourceType, kerr.UnknownTopicOrPartition.Code
				answer.Resources = append(answer.Resources, unknown)
				late++
				return answer, nil, true
			}
			return nil, nil, false
		})
		if err := kafka.EnsureTopics(t.Context(), b.Config(""), []events.Topic{events.Orders}, kafka.EnsureOptions{}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if late != 3 {
			t.Errorf("%s: the broker was behind %d times", name, late)
		}
	}
}

// A topic that runs out of time is not the shop's concern unless it is kept for ever.
func TestRetentionOfPassingTopicsIsFree(t *testing.T) {
	t.Parallel()
	b := kafkatest.New(t)
	config := map[string]string{"message.timestamp.type": "LogAppendTime", "retention.ms": "3600000"}
	if err := b.Cluster().CreateTopic(events.Clicks.Name, 3, config); err != nil {
		t.Fatal(err)
	}
	if err := kafka.EnsureTopics(t.Context(), b.Config(""), []events.Topic{events.Clicks}, kafka.EnsureOptions{}); err != nil {
		t.Error(err)
	}
}

func TestEnsureTopicsNamesTheBrokersThatDoNotAnswer(t *testing.T) {
	t.Parallel()
	err := kafka.EnsureTopics(t.Context(), kafka.Config{Brokers: []string{"127.0.0.1:1"}}, nil, kafka.EnsureOptions{})
	if err == nil || !errors.Is(err, sarama.ErrOutOfBrokers) {
		t.Fatalf("got %v", err)
	}
}

func setting(t *testing.T, admin sarama.ClusterAdmin, topic, name string) string {
	t.Helper()
	resources, err := admin.DescribeConfigs([]*sarama.ConfigResource{{Type: sarama.TopicResource, Name: topic}}, sarama.DescribeConfigsOptions{})
	if err != nil || len(resources) != 1 {
		t.Fatalf("settings of %s: %v, %v", topic, resources, err)
	}
	for _, e := range resources[0].Configs {
		if e.Name == name {
			return e.Value
		}
	}
	return ""
}
