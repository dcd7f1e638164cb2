package kafka_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/IBM/sarama"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/kafka"
)

func inspect(t *testing.T, cfg kafka.Config) (names []string, all string) {
	t.Helper()
	risks, err := kafka.Inspect(t.Context(), cfg, events.Topics())
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range risks {
		names = append(names, r.Name)
		all += r.String() + "\n"
	}
	return names, all
}

// What migrate makes on three brokers is safe, and what is changed afterwards is noticed.
func TestInspection(t *testing.T) {
	t.Parallel()
	_, cfg := clusterOf(t, 3)
	if names, all := inspect(t, cfg); !slices.Equal(names, []string{kafka.RiskTopicMissing}) || !strings.Contains(all, "eventos-usuario") {
		t.Errorf("without topics: %s", all)
	}
	if err := kafka.EnsureTopics(t.Context(), cfg, events.Topics(), kafka.EnsureOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, all := inspect(t, cfg); all != "" {
		t.Errorf("as migrate made it: %s", all)
	}
	for name, value := range map[string]string{"retention.ms": "1000", "max.message.bytes": "1000", "min.insync.replicas": "3", "unclean.leader.election.enable": "true"} {
		change := map[string]sarama.IncrementalAlterConfigsEntry{name: {Value: &value}}
		if err := adminTo(t, cfg).IncrementalAlterConfig(sarama.TopicResource, "orders", change, false); err != nil {
			t.Fatal(err)
		}
	}
	names, all := inspect(t, cfg)
	want := []string{kafka.RiskMinInSyncHigh, kafka.RiskUncleanElection, kafka.RiskRetention, kafka.RiskMessageSize}
	if !slices.Equal(names, want) || strings.Count(all, "orders") != len(want) {
		t.Errorf("found %q, expected %q:\n%s", names, want, all)
	}
}

func TestInspectionOfBrokers(t *testing.T) {
	t.Parallel()
	_, cfg := clusterOf(t, 3, kfake.BrokerConfigs(map[string]string{"auto.create.topics.enable": "true", "offsets.topic.replication.factor": "1"}))
	if err := kafka.EnsureTopics(t.Context(), cfg, events.Topics(), kafka.EnsureOptions{Replication: 2}); err != nil {
		t.Fatal(err)
	}
	names, all := inspect(t, cfg)
	if want := []string{kafka.RiskReplication, kafka.RiskMinInSyncLow, kafka.RiskOffsets, kafka.RiskAutoCreate}; !slices.Equal(names, want) {
		t.Errorf("found %q, expected %q:\n%s", names, want, all)
	}
	if !strings.Contains(all, "broker 0, 1, 2") {
		t.Errorf("the brokers are not named:\n%s", all)
	}
}

func TestInspectionOfTheEmbeddedBrokerIsOneLine(t *testing.T) {
	t.Parallel()
	_, cfg := clusterOf(t, 1)
	if err := kafka.EnsureTopics(t.Context(), cfg, events.Topics(), kafka.EnsureOptions{}); err != nil {
		t.Fatal(err)
	}
	if names, all := inspect(t, cfg); !slices.Equal(names, []string{kafka.RiskSingleBroker}) {
		t.Errorf("found %s", all)
	}
}

// A user who may not look is told so: silence would pass for safety.
func TestInspectionByAUserWithoutRights(t *testing.T) {
	t.Parallel()
	describe := kfake.ACL{Resource: kmsg.ACLResourceTypeTopic, Name: "*", Pattern: kmsg.ACLResourcePatternTypeLiteral, Operation: kmsg.ACLOperationDescribe, Allow: true}
	_, cfg := clusterOf(t, 3, append(signsIn(), kfake.EnableACLs(), kfake.User("SCRAM-SHA-256", "reader", password, describe),
		kfake.User("SCRAM-SHA-256", "stranger", password))...)
	admin := cfg
	admin.SASL = as("scram-sha-256")
	if err := kafka.EnsureTopics(t.Context(), admin, events.Topics(), kafka.EnsureOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, all := inspect(t, admin); all != "" {
		t.Errorf("by one with rights: %s", all)
	}
	for _, who := range []string{"reader", "stranger"} {
		cfg.SASL = kafka.SASL{Mechanism: "scram-sha-256", User: who, Password: password}
		names, all := inspect(t, cfg)
		if !slices.Equal(names, []string{kafka.RiskNotInspected}) || !strings.Contains(all, "broker 2") || !strings.Contains(all, "topic orders") || !strings.Contains(all, "DescribeConfigs") {
			t.Errorf("by %s: %s", who, all)
		}
	}
}

func TestAClusterThatIsAwayIsNoRisk(t *testing.T) {
	t.Parallel()
	if risks, err := kafka.Inspect(t.Context(), kafka.Config{Brokers: []string{"127.0.0.1:1"}}, events.Topics()); err == nil {
		t.Errorf("found %v", risks)
	}
}
