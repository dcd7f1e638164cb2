package main_test

import (
	"strings"
	"syscall"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/kafka"
	"github.com/feira-shop/feira/shared/kafka/kafkatest"
	"github.com/feira-shop/feira/shared/pg/pgtest"
)

// An unsafe Kafka is a line in the log for each risk, and with --strict the reason not to start.
func TestUnsafeKafkaIsNamedAtStart(t *testing.T) {
	t.Parallel()
	unsafe, err := kfake.NewCluster(kfake.NumBrokers(3), kfake.BrokerConfigs(map[string]string{"auto.create.topics.enable": "true"}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(unsafe.Close)
	if err := kafka.EnsureTopics(t.Context(), kafka.Config{Brokers: unsafe.ListenAddrs()}, events.Topics(), kafka.EnsureOptions{Replication: 1}); err != nil {
		t.Fatal(err)
	}
	single := kafkatest.New(t, events.Topics()...)
	for name, c := range map[string]struct {
		brokers []string
		level   string
		risks   []string
	}{
		"three brokers": {unsafe.ListenAddrs(), "WARN", []string{kafka.RiskReplication, kafka.RiskAutoCreate}},
		"one broker":    {single.Brokers(), "INFO", []string{kafka.RiskSingleBroker}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			env := []string{"FEIRA_KAFKA=" + strings.Join(c.brokers, ","), "FEIRA_POSTGRES_LOYALTY=" + pgtest.New(t).DSN}
			args := []string{"run", "loyalty", "--migrate", "--listen=127.0.0.1:0", "--log-format=json", "--jwks=" + keySet(t)}
			call(t, append(env, "FEIRA_STRICT=true"), args...).fails(t, append(c.risks, "--strict, FEIRA_STRICT")...)

			p := start(t, env, args...)
			for _, r := range c.risks {
				p.until(`"risk":"` + r + `"`)
			}
			p.until(`"running"`)
			if code, _ := p.stop(syscall.SIGTERM); code != 0 {
				t.Errorf("exit code %d", code)
			}
			said := p.out.String()
			if n := strings.Count(said, `"risk":`); n != len(c.risks) || strings.Count(said, `"level":"`+c.level+`","msg":"Kafka: `) != n {
				t.Errorf("%d lines about risks, expected %d at level %s", n, len(c.risks), c.level)
			}
		})
	}
}
