//go:build e2e

package secure

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/testcontainers/testcontainers-go/log"

	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/kafka"
	"github.com/feira-shop/feira/shared/kafka/kafkatest"
	"github.com/feira-shop/feira/shared/pg/pgtest"
)

func TestMain(m *testing.M) {
	log.SetDefault(log.NewNoopLogger())
	pgtest.Main(m)
}

// signInAgain is how long brokers are content with one sign-in.
const signInAgain = 4 * time.Second

// It is one test, because three brokers are many processes to start.
func TestKafkaAsItIsRunInProduction(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	c := start(ctx, t)
	for _, step := range []struct {
		name string
		test func(context.Context, *testing.T, *cluster)
	}{
		{"topics are made safe, and nothing is found to be unsafe", topicsAreSafe},
		{"write, read as a group and outside of one", writeAndRead},
		{"a certificate instead of a sign-in", byCertificate},
		{"whoever is refused is told why", refusals},
		{"feira's commands and services", services},
		{"one broker is killed while connections sign in again", killABroker},
	} {
		if !t.Run(step.name, func(t *testing.T) { step.test(ctx, t, c) }) {
			return
		}
	}
}

func topicsAreSafe(ctx context.Context, t *testing.T, c *cluster) {
	cfg := c.signed()
	if err := cfg.Validate(); err != nil {
		t.Fatal(err)
	}
	if err := kafka.EnsureTopics(ctx, cfg, events.Topics(), kafka.EnsureOptions{Report: func(s string) { t.Log(s) }}); err != nil {
		t.Fatal(err)
	}
	admin, err := sarama.NewClusterAdminFromClient(connect(t, cfg))
	if err != nil {
		t.Fatal(err)
	}
	metas, err := admin.DescribeTopics([]string{events.Orders.Name})
	if err != nil || len(metas[0].Partitions[0].Replicas) != 3 {
		t.Errorf("orders has %d copies, expected 3: %v", len(metas[0].Partitions[0].Replicas), err)
	}
	described, err := admin.DescribeConfigs([]*sarama.ConfigResource{{Type: sarama.TopicResource, Name: events.Orders.Name}}, sarama.DescribeConfigsOptions{})
	if err != nil {
		t.Fatal(err)
	}
	have := map[string]string{}
	for _, e := range described[0].Configs {
		have[e.Name] = e.Value
	}
	for name, want := range map[string]string{"min.insync.replicas": "2", "unclean.leader.election.enable": "false", "retention.ms": "-1"} {
		if have[name] != want {
			t.Errorf("%s is %q, expected %s", name, have[name], want)
		}
	}
	finds(ctx, t, cfg)
	changes := kafka.EnsureOptions{MinInSync: 1, Retention: 48 * time.Hour}
	if err := kafka.EnsureTopics(ctx, cfg, events.Topics(), changes); err != nil {
		t.Fatal(err)
	}
	finds(ctx, t, cfg, kafka.RiskMinInSyncLow)
	if err := kafka.EnsureTopics(ctx, cfg, events.Topics(), kafka.EnsureOptions{MinInSync: 2}); err != nil {
		t.Fatal(err)
	}
	finds(ctx, t, cfg)
}

// finds waits for an inspection that finds just these risks: brokers hear of changes one after the other.
func finds(ctx context.Context, t *testing.T, cfg kafka.Config, want ...string) {
	t.Helper()
	eventually(ctx, t, fmt.Sprintf("the risks %q", want), func() error {
		risks, err := kafka.Inspect(ctx, cfg, events.Topics())
		var names []string
		for _, r := range risks {
			names = append(names, r.Name)
		}
		if err == nil && !slices.Equal(names, want) {
			err = fmt.Errorf("found %v", risks)
		}
		return err
	})
}

func writeAndRead(ctx context.Context, t *testing.T, c *cluster) {
	cfg := c.signed()
	p := publisher(t, cfg)
	for n := range 90 {
		write(ctx, t, p, n)
	}
	consume(ctx, t, cfg, 90)
	reader, err := kafka.OpenReader(connect(t, cfg), events.Clicks.Name, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = reader.Close() }()
	if got, err := reader.Next(ctx, 1000); err != nil || len(got) != 30 {
		t.Errorf("read %d records of the first partition, expected 30: %v", len(got), err)
	}
}

func byCertificate(ctx context.Context, t *testing.T, c *cluster) {
	cfg := c.config("MUTUAL")
	cfg.TLS = kafka.TLS{Enabled: true, CA: c.authority.File}
	cfg.TLS.Cert, cfg.TLS.Key = c.authority.Issue(t, "service")
	write(ctx, t, publisher(t, cfg), 90)
	finds(ctx, t, cfg)
}

func refusals(_ context.Context, t *testing.T, c *cluster) {
	stranger := kafkatest.NewAuthority(t)
	for name, try := range map[string]struct {
		listener string
		change   func(*kafka.Config)
		says     []string
	}{
		"wrong password":           {"SIGNED", func(c *kafka.Config) { c.SASL.Password = "guessed" }, []string{"refused user feira with SCRAM-SHA-512", "FEIRA_KAFKA_PASSWORD"}},
		"unknown user":             {"SIGNED", func(c *kafka.Config) { c.SASL.User = "nobody" }, []string{"refused user nobody", "FEIRA_KAFKA_USER"}},
		"mechanism not offered":    {"SIGNED", func(c *kafka.Config) { c.SASL.Mechanism = "scram-sha-256" }, []string{"do not offer SCRAM-SHA-256", "FEIRA_KAFKA_SASL"}},
		"no sign-in":               {"SIGNED", func(c *kafka.Config) { c.SASL = kafka.SASL{} }, []string{"not signed in", "FEIRA_KAFKA_SASL"}},
		"no TLS":                   {"SIGNED", func(c *kafka.Config) { c.TLS = kafka.TLS{} }, []string{"not encrypted", "FEIRA_KAFKA_TLS"}},
		"TLS where there is none":  {"SETUP", func(c *kafka.Config) { c.SASL = kafka.SASL{} }, []string{"does not seem to speak TLS", "FEIRA_KAFKA_TLS"}},
		"wrong authority":          {"SIGNED", func(c *kafka.Config) { c.TLS.CA = stranger.File }, []string{"no authority in " + stranger.File, "FEIRA_KAFKA_CA"}},
		"wrong name":               {"SIGNED", func(c *kafka.Config) { c.TLS.ServerName = "kafka.example" }, []string{"not for kafka.example", "FEIRA_KAFKA_SERVER_NAME"}},
		"no certificate":           {"MUTUAL", func(c *kafka.Config) { c.SASL = kafka.SASL{} }, []string{"refused this client's side", "FEIRA_KAFKA_CERT"}},
		"certificate of strangers": {"MUTUAL", func(k *kafka.Config) { k.SASL = kafka.SASL{}; k.TLS.Cert, k.TLS.Key = stranger.Issue(t, "x") }, []string{"refused this client's side", "FEIRA_KAFKA_CERT"}},
	} {
		cfg := c.signed()
		cfg.Brokers = c.config(try.listener).Brokers
		try.change(&cfg)
		client, err := kafka.NewClient(cfg)
		if err == nil {
			_ = client.Close()
			t.Errorf("%s: connected", name)
			continue
		}
		for _, want := range try.says {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: the error does not say %q:\n%v", name, want, err)
			}
		}
		if strings.Contains(err.Error(), "guessed") || strings.Contains(err.Error(), "sesame") {
			t.Errorf("%s: the error shows the password: %v", name, err)
		}
	}
}

// killABroker writes and reads across the loss of a broker, long enough for brokers to want a new sign-in.
func killABroker(ctx context.Context, t *testing.T, c *cluster) {
	cfg := c.signed()
	p := publisher(t, cfg)
	client := connect(t, cfg)
	from := map[int32]int64{}
	for partition := range events.Clicks.Partitions {
		end, err := client.GetOffset(events.Clicks.Name, partition, sarama.OffsetNewest)
		if err != nil {
			t.Fatal(err)
		}
		from[partition] = end
	}
	began, killed, n := time.Now(), false, 0
	for ; time.Since(began) < 3*signInAgain; n++ {
		if !killed && time.Since(began) > signInAgain {
			c.kill(ctx, t, brokers-1)
			killed = true
		}
		write(ctx, t, p, n)
	}
	t.Logf("%d records acknowledged, one broker of three killed", n)
	seen := map[int]bool{}
	for partition, offset := range from {
		reader, err := kafka.OpenReader(client, events.Clicks.Name, partition, offset)
		if err != nil {
			t.Fatal(err)
		}
		records, err := reader.Next(ctx, n)
		if err = errors.Join(err, reader.Close()); err != nil {
			t.Fatal(err)
		}
		last := -1
		for _, r := range records {
			number, err := strconv.Atoi(string(r.Value))
			if err != nil || number < last {
				t.Errorf("partition %d: %q comes after %d", partition, r.Value, last)
			}
			last, seen[number] = number, true
		}
	}
	if len(seen) != n {
		t.Errorf("%d of %d acknowledged records are there", len(seen), n)
	}
	consume(ctx, t, cfg, 1)
}

func connect(t *testing.T, cfg kafka.Config) sarama.Client {
	t.Helper()
	client, err := kafka.NewClient(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}

func publisher(t *testing.T, cfg kafka.Config) *kafka.Publisher {
	t.Helper()
	p, err := kafka.NewPublisher(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	return p
}

// write writes a number and does not give up before it is acknowledged, as the relay does.
func write(ctx context.Context, t *testing.T, p *kafka.Publisher, n int) {
	t.Helper()
	record := kafka.Record{Partition: int32(n) % events.Clicks.Partitions, Value: []byte(strconv.Itoa(n))}
	eventually(ctx, t, "an acknowledgement", func() error {
		_, err := p.Send(ctx, events.Clicks.Name, []kafka.Record{record})
		return err
	})
}

// consume reads n records as a member of a group that starts at the beginning.
func consume(ctx context.Context, t *testing.T, cfg kafka.Config, n int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	subscriber, err := kafka.NewSubscriber(cfg, "secure-"+strconv.Itoa(n), "member", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = subscriber.Close() }()
	messages, err := subscriber.Subscribe(ctx, events.Clicks.Name)
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		select {
		case m := <-messages:
			m.Ack()
		case <-ctx.Done():
			t.Fatalf("the group got %d of %d records", i, n)
		}
	}
}

// secretFile keeps the password as a cluster's secret store would.
func secretFile(t *testing.T) string {
	t.Helper()
	path := t.TempDir() + "/password"
	if err := os.WriteFile(path, []byte(password+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
