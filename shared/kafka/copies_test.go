package kafka_test

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/kafka"
)

// clusterOf starts brokers without topics.
func clusterOf(t *testing.T, brokers int, opts ...kfake.Opt) (*kfake.Cluster, kafka.Config) {
	t.Helper()
	c, err := kfake.NewCluster(append(opts, kfake.NumBrokers(brokers))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c, kafka.Config{Brokers: c.ListenAddrs(), ClientID: "test"}
}

// Without being told, topics survive the loss of a broker wherever there are enough, and one may always be away.
func TestCopiesOfNewTopics(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		brokers                int
		replication, minInSync int16 // as given
		copies, inSync         int   // as made
	}{
		{1, 0, 0, 1, 1}, {2, 0, 0, 2, 1}, {3, 0, 0, 3, 2}, {5, 0, 0, 3, 2},
		{5, 5, 0, 5, 4}, {3, 1, 0, 1, 1}, {5, 0, 1, 3, 1}, {3, 2, 2, 2, 2}, {5, 4, 2, 4, 2},
	} {
		_, cfg := clusterOf(t, c.brokers)
		var said []string
		opts := kafka.EnsureOptions{Replication: c.replication, MinInSync: c.minInSync, Report: func(s string) { said = append(said, s) }}
		if err := kafka.EnsureTopics(t.Context(), cfg, []events.Topic{events.Orders}, opts); err != nil {
			t.Errorf("%+v: %v", c, err)
			continue
		}
		admin := adminTo(t, cfg)
		metas, err := admin.DescribeTopics([]string{"orders"})
		if err != nil {
			t.Fatal(err)
		}
		if n := len(metas[0].Partitions[0].Replicas); n != c.copies {
			t.Errorf("%+v: %d copies", c, n)
		}
		for name, want := range map[string]string{"min.insync.replicas": strconv.Itoa(c.inSync), "unclean.leader.election.enable": "false", "retention.ms": "-1"} {
			if have := setting(t, admin, "orders", name); have != want {
				t.Errorf("%+v: %s is %q, expected %s", c, name, have, want)
			}
		}
		if want := "made orders: 6 partitions, copies " + strconv.Itoa(c.copies) + ", in sync at least " + strconv.Itoa(c.inSync); !slices.Equal(said, []string{want}) {
			t.Errorf("%+v: said %q", c, said)
		}
	}
}

func TestCopiesThatCannotBeAreNamed(t *testing.T) {
	t.Parallel()
	_, cfg := clusterOf(t, 3)
	for name, c := range map[string]struct {
		opts kafka.EnsureOptions
		says []string
	}{
		"more copies than brokers": {kafka.EnsureOptions{Replication: 4}, []string{"--replication (FEIRA_KAFKA_REPLICATION) is 4, and 3 brokers answer"}},
		"negative":                 {kafka.EnsureOptions{Replication: -1, MinInSync: -1}, []string{"--replication", "--min-insync"}},
		"more in sync than copies": {kafka.EnsureOptions{Replication: 2, MinInSync: 3}, []string{"--min-insync (FEIRA_KAFKA_MIN_INSYNC) is 3, and there will be 2 copies"}},
		"than default copies":      {kafka.EnsureOptions{MinInSync: 4}, []string{"--min-insync (FEIRA_KAFKA_MIN_INSYNC) is 4, and there will be 3 copies"}},
		"short retention":          {kafka.EnsureOptions{Retention: time.Minute}, []string{"--clicks-retention (FEIRA_CLICKS_RETENTION) is 1m0s; expected at least 1h"}},
		"negative retention":       {kafka.EnsureOptions{Retention: -time.Hour}, []string{"--clicks-retention"}},
		"everything":               {kafka.EnsureOptions{Replication: 9, MinInSync: 9, Retention: 1}, []string{"--replication", "--min-insync", "--clicks-retention"}},
	} {
		err := kafka.EnsureTopics(t.Context(), cfg, events.Topics(), c.opts)
		var wrong *kafka.ConfigError
		if !errors.As(err, &wrong) || len(wrong.Problems) != len(c.says) {
			t.Errorf("%s: got %v, expected %d problems", name, err, len(c.says))
			continue
		}
		for i, want := range c.says {
			if !strings.Contains(wrong.Problems[i].Error(), want) {
				t.Errorf("%s: problem %d does not say %q: %v", name, i, want, wrong.Problems[i])
			}
		}
	}
	if metas, err := adminTo(t, cfg).ListTopics(); err != nil || len(metas) > 0 {
		t.Errorf("topics were made: %v, %v", metas, err)
	}
}

// What can be changed back is changed when it is asked for by name, and is otherwise left alone.
func TestSettingsOfExistingTopics(t *testing.T) {
	t.Parallel()
	_, cfg := clusterOf(t, 3)
	topics := []events.Topic{events.Orders, events.Clicks}
	ensure := func(opts kafka.EnsureOptions) ([]string, error) {
		var said []string
		opts.Report = func(s string) { said = append(said, s) }
		err := kafka.EnsureTopics(t.Context(), cfg, topics, opts)
		return said, err
	}
	if _, err := ensure(kafka.EnsureOptions{Replication: 2, Retention: 24 * time.Hour}); err != nil {
		t.Fatal(err)
	}
	admin := adminTo(t, cfg)
	have := func() [3]string {
		return [3]string{setting(t, admin, "orders", "min.insync.replicas"), setting(t, admin, "eventos-usuario", "retention.ms"), setting(t, admin, "orders", "retention.ms")}
	}
	if got := have(); got != [3]string{"1", "86400000", "-1"} {
		t.Errorf("made with %v", got)
	}
	if said, err := ensure(kafka.EnsureOptions{}); err != nil || len(said) > 0 {
		t.Errorf("nothing asked for: %q, %v", said, err)
	}
	for _, opts := range []kafka.EnsureOptions{{Replication: 3}, {MinInSync: 3}} {
		var differ *kafka.TopicsError
		if _, err := ensure(opts); !errors.As(err, &differ) || len(differ.Differences) != 2 || differ.Differences[0].Setting != "replication factor" {
			t.Errorf("%+v: got %v", opts, err)
		}
	}
	if _, err := ensure(kafka.EnsureOptions{MinInSync: 2, Retention: 48 * time.Hour, CheckOnly: true}); err != nil {
		t.Error(err)
	}
	if got := have(); got != [3]string{"1", "86400000", "-1"} {
		t.Errorf("changed to %v", got)
	}
	said, err := ensure(kafka.EnsureOptions{MinInSync: 2, Retention: 48 * time.Hour})
	if err != nil || len(said) != 3 || !slices.Contains(said, "changed eventos-usuario: retention.ms was 86400000 and is 172800000") {
		t.Errorf("said %q, %v", said, err)
	}
	if got := have(); got != [3]string{"2", "172800000", "-1"} {
		t.Errorf("is %v", got)
	}
}

func adminTo(t *testing.T, cfg kafka.Config) sarama.ClusterAdmin {
	t.Helper()
	client, err := kafka.NewClient(cfg)
	if err != nil {
		t.Fatal(err)
	}
	admin, err := sarama.NewClusterAdminFromClient(client)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = admin.Close() })
	return admin
}
