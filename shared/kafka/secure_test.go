package kafka_test

import (
	"context"
	"crypto/tls"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/kafka"
	"github.com/feira-shop/feira/shared/kafka/kafkatest"
)

const (
	user     = "feira"
	password = "open sesame, 7 times" // shows in no error
)

// patience bounds what a test waits for, on a loaded machine.
const patience = 2 * time.Minute

// brokerOf starts a broker and gives a configuration that only knows where it is.
func brokerOf(t *testing.T, opts ...kfake.Opt) (*kfake.Cluster, kafka.Config) {
	t.Helper()
	c, err := kfake.NewCluster(append(opts, kfake.NumBrokers(1), kfake.SeedTopics(partitions, topic))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c, kafka.Config{Brokers: c.ListenAddrs(), ClientID: "test"}
}

// signsIn has the broker know our user by every mechanism.
func signsIn() []kfake.Opt {
	opts := []kfake.Opt{kfake.EnableSASL()}
	for _, m := range []string{"PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"} {
		opts = append(opts, kfake.Superuser(m, user, password))
	}
	return opts
}

func as(mechanism string) kafka.SASL {
	return kafka.SASL{Mechanism: mechanism, User: user, Password: password}
}

// What services do with Kafka, they do over every kind of connection.
func TestEveryClientConnectsAsConfigured(t *testing.T) {
	t.Parallel()
	authority := kafkatest.NewAuthority(t)
	trusting := kafka.TLS{Enabled: true, CA: authority.File}
	known := trusting
	known.Cert, known.Key = authority.Issue(t, "client")
	named := trusting
	named.ServerName = "kafka.example"
	mutual := authority.Server(t, "127.0.0.1")
	mutual.ClientAuth = tls.RequireAndVerifyClientCert
	here := authority.Server(t, "127.0.0.1")
	for name, c := range map[string]struct {
		broker []kfake.Opt
		tls    kafka.TLS
		sasl   kafka.SASL
	}{
		"TLS":                   {[]kfake.Opt{kfake.TLS(here)}, trusting, kafka.SASL{}},
		"TLS by another name":   {[]kfake.Opt{kfake.TLS(authority.Server(t, "kafka.example"))}, named, kafka.SASL{}},
		"mutual TLS":            {[]kfake.Opt{kfake.TLS(mutual)}, known, kafka.SASL{}},
		"TLS and SCRAM-SHA-512": {append(signsIn(), kfake.TLS(here)), trusting, as("scram-sha-512")},
		"TLS and SCRAM-SHA-256": {append(signsIn(), kfake.TLS(here)), trusting, as("SCRAM-SHA-256")},
		"TLS and PLAIN":         {append(signsIn(), kfake.TLS(here)), trusting, as("plain")},
		"SCRAM-SHA-512":         {signsIn(), kafka.TLS{}, as("scram-sha-512")},
		"PLAIN on one machine":  {signsIn(), kafka.TLS{}, as("plain")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, cfg := brokerOf(t, c.broker...)
			cfg.TLS, cfg.SASL = c.tls, c.sasl
			if err := cfg.Validate(); err != nil {
				t.Fatal(err)
			}
			exercise(t, cfg)
		})
	}
}

// A user needs no more than what docs/runbook.md lists.
func TestRightsThatAreNeeded(t *testing.T) {
	t.Parallel()
	allow := func(kind kmsg.ACLResourceType, name string, operations ...kmsg.ACLOperation) (acls []kfake.ACL) {
		for _, o := range operations {
			acls = append(acls, kfake.ACL{Resource: kind, Name: name, Pattern: kmsg.ACLResourcePatternTypeLiteral, Operation: o, Allow: true})
		}
		return acls
	}
	acls := append(allow(kmsg.ACLResourceTypeTopic, "*", kmsg.ACLOperationRead, kmsg.ACLOperationWrite, kmsg.ACLOperationCreate, kmsg.ACLOperationDescribeConfigs, kmsg.ACLOperationAlterConfigs),
		append(allow(kmsg.ACLResourceTypeGroup, "*", kmsg.ACLOperationRead), allow(kmsg.ACLResourceTypeCluster, "kafka-cluster", kmsg.ACLOperationDescribeConfigs)...)...)
	_, cfg := brokerOf(t, append(signsIn(), kfake.EnableACLs(), kfake.User("SCRAM-SHA-512", "limited", password, acls...))...)
	cfg.SASL = kafka.SASL{Mechanism: "scram-sha-512", User: "limited", Password: password}
	exercise(t, cfg)
	for _, opts := range []kafka.EnsureOptions{{}, {Retention: time.Hour, MinInSync: 1}} { // made, then changed
		if err := kafka.EnsureTopics(t.Context(), cfg, []events.Topic{events.Clicks}, opts); err != nil {
			t.Errorf("migrate: %v", err)
		}
	}
	if risks, err := kafka.Inspect(t.Context(), cfg, []events.Topic{events.Payments, events.Clicks}); err != nil || len(risks) != 1 || risks[0].Name != kafka.RiskSingleBroker {
		t.Errorf("found %v, %v", risks, err)
	}
}

// exercise makes a topic, writes, reads as a group and outside of any, and inspects.
func exercise(t *testing.T, cfg kafka.Config) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := kafka.EnsureTopics(ctx, cfg, []events.Topic{events.Payments}, kafka.EnsureOptions{}); err != nil {
		t.Fatalf("admin: %v", err)
	}
	publisher, err := kafka.NewPublisher(cfg)
	if err != nil {
		t.Fatalf("publisher: %v", err)
	}
	defer func() { _ = publisher.Close() }()
	if _, err := publisher.Send(ctx, events.Payments.Name, toPartitions(0, 1, 2, 0)); err != nil {
		t.Fatalf("publish: %v", err)
	}
	consumed(ctx, t, cfg, events.Payments.Name, 4)
	client, err := kafka.NewClient(cfg)
	if err != nil {
		t.Fatalf("client: %v", err)
	}
	defer func() { _ = client.Close() }()
	reader, err := kafka.OpenReader(client, events.Payments.Name, 0, 0)
	if err != nil {
		t.Fatalf("reader: %v", err)
	}
	defer func() { _ = reader.Close() }()
	if got, err := reader.Next(ctx, 10); err != nil || len(got) != 2 {
		t.Errorf("reader: %d records, %v; expected 2", len(got), err)
	}
	if _, err := kafka.Inspect(ctx, cfg, []events.Topic{events.Payments}); err != nil {
		t.Errorf("inspect: %v", err)
	}
}

// consumed reads n records as a new member of a group.
func consumed(ctx context.Context, t *testing.T, cfg kafka.Config, topic string, n int) {
	t.Helper()
	subscriber, err := kafka.NewSubscriber(cfg, "group", "member", nil)
	if err != nil {
		t.Fatalf("subscriber: %v", err)
	}
	defer func() { _ = subscriber.Close() }()
	messages, err := subscriber.Subscribe(ctx, topic)
	if err != nil {
		t.Fatalf("subscribe: %v", err)
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

// Brokers may ask for a new sign-in on a connection that lives (connections.max.reauth.ms).
func TestConnectionsSignInAgain(t *testing.T) {
	t.Parallel()
	broker, cfg := brokerOf(t, append(signsIn(), kfake.BrokerConfigs(map[string]string{"connections.max.reauth.ms": "1000"}))...)
	cfg.SASL = as("scram-sha-512")
	publisher, err := kafka.NewPublisher(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = publisher.Close() }()
	var again, opened atomic.Int32
	count := func(n *atomic.Int32) func(kmsg.Request) (kmsg.Response, error, bool) {
		return func(kmsg.Request) (kmsg.Response, error, bool) {
			broker.KeepControl()
			n.Add(1)
			return nil, nil, false
		}
	}
	if _, err := publisher.Send(t.Context(), topic, toPartitions(0)); err != nil { // connects
		t.Fatal(err)
	}
	broker.ControlKey(int16(kmsg.SASLHandshake), count(&again))
	broker.ControlKey(int16(kmsg.ApiVersions), count(&opened))
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(patience); again.Load() < 3; <-tick.C {
		if _, err := publisher.Send(t.Context(), topic, toPartitions(0)); err != nil {
			t.Fatal(err)
		}
		if time.Now().After(deadline) {
			t.Fatalf("signed in again %d times", again.Load())
		}
	}
	if opened.Load() > 0 {
		t.Errorf("%d new connections instead", opened.Load())
	}
}

// A certificate that is renewed is used at the next connection.
func TestFilesAreReadAtEachConnection(t *testing.T) {
	t.Parallel()
	authority := kafkatest.NewAuthority(t)
	_, cfg := brokerOf(t, kfake.TLS(authority.Server(t, "127.0.0.1")))
	cfg.TLS = kafka.TLS{Enabled: true, CA: t.TempDir() + "/ca.pem"}
	if _, err := kafka.NewClient(cfg); err == nil || !strings.Contains(err.Error(), cfg.TLS.CA) {
		t.Fatalf("without the file: %v", err)
	}
	copyFile(t, authority.File, cfg.TLS.CA)
	client, err := kafka.NewClient(cfg)
	if err != nil {
		t.Fatal(err)
	}
	_ = client.Close()
}
