package kafka_test

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/twmb/franz-go/pkg/kerr"
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

// A user needs no more than what docs/operations.md lists.
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

// A connection that is refused is one sentence: who refused, why, and which setting mends it.
func TestRefusedConnectionsAreNamed(t *testing.T) {
	t.Parallel()
	authority, stranger := kafkatest.NewAuthority(t), kafkatest.NewAuthority(t)
	trusting := kafka.TLS{Enabled: true, CA: authority.File}
	mutual := authority.Server(t, "127.0.0.1")
	mutual.ClientAuth = tls.RequireAndVerifyClientCert
	unknown := trusting
	unknown.Cert, unknown.Key = stranger.Issue(t, "client")
	guess := as("scram-sha-512")
	guess.Password = "guessed"
	encrypted := []kfake.Opt{kfake.TLS(authority.Server(t, "127.0.0.1"))}
	for name, c := range map[string]struct {
		broker []kfake.Opt
		tls    kafka.TLS
		sasl   kafka.SASL
		says   []string
	}{
		"wrong authority":        {encrypted, kafka.TLS{Enabled: true, CA: stranger.File}, kafka.SASL{}, []string{stranger.File, "signed its certificate", "--kafka-ca (FEIRA_KAFKA_CA)"}},
		"the system's authority": {encrypted, kafka.TLS{Enabled: true}, kafka.SASL{}, []string{"the system's authorities", "--kafka-ca"}},
		"wrong name":             {[]kfake.Opt{kfake.TLS(authority.Server(t, "kafka.example"))}, trusting, kafka.SASL{}, []string{"not for 127.0.0.1", "--kafka-server-name (FEIRA_KAFKA_SERVER_NAME)"}},
		"plain client, TLS port": {encrypted, kafka.TLS{}, kafka.SASL{}, []string{"not encrypted", "--kafka-tls (FEIRA_KAFKA_TLS)"}},
		"no certificate":         {[]kfake.Opt{kfake.TLS(mutual)}, trusting, kafka.SASL{}, []string{"refused this client's side", "--kafka-cert"}},
		"a stranger":             {[]kfake.Opt{kfake.TLS(mutual)}, unknown, kafka.SASL{}, []string{"refused this client's side", "--kafka-cert (FEIRA_KAFKA_CERT)"}},
		"nobody":                 {append(signsIn(), encrypted...), trusting, kafka.SASL{}, []string{"not signed in", "--kafka-sasl (FEIRA_KAFKA_SASL)"}},
		"wrong password":         {append(signsIn(), encrypted...), trusting, guess, []string{"signed in as feira", "password"}},
		"file without authority": {encrypted, kafka.TLS{Enabled: true, CA: unknown.Key}, kafka.SASL{}, []string{unknown.Key, "holds no certificate"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, cfg := brokerOf(t, c.broker...)
			cfg.TLS, cfg.SASL = c.tls, c.sasl
			_, err := kafka.NewClient(cfg)
			if err == nil {
				t.Fatal("connected")
			}
			for _, want := range c.says {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("the error does not say %q:\n%v", want, err)
				}
			}
			if strings.Contains(err.Error(), password) || strings.Contains(err.Error(), "guessed") {
				t.Errorf("the error shows the password: %v", err)
			}
		})
	}
}

// Real brokers answer a failed sign-in, where the embedded one hangs up.
func TestRefusedSignInsAreNamed(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		refuse func(*kfake.Cluster)
		says   []string
	}{
		"wrong password": {func(k *kfake.Cluster) {
			k.ControlKey(int16(kmsg.SASLAuthenticate), func(r kmsg.Request) (kmsg.Response, error, bool) {
				k.KeepControl()
				answer := r.ResponseKind().(*kmsg.SASLAuthenticateResponse)
				answer.ErrorCode = kerr.SaslAuthenticationFailed.Code
				return answer, nil, true
			})
		}, []string{"refused user feira", "SCRAM-SHA-512", "--kafka-user (FEIRA_KAFKA_USER)", "FEIRA_KAFKA_PASSWORD"}},
		"mechanism": {func(k *kfake.Cluster) {
			k.ControlKey(int16(kmsg.SASLHandshake), func(r kmsg.Request) (kmsg.Response, error, bool) {
				k.KeepControl()
				answer := r.ResponseKind().(*kmsg.SASLHandshakeResponse)
				answer.ErrorCode = kerr.UnsupportedSaslMechanism.Code
				return answer, nil, true
			})
		}, []string{"do not offer SCRAM-SHA-512", "--kafka-sasl (FEIRA_KAFKA_SASL)"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			broker, cfg := brokerOf(t, signsIn()...)
			cfg.SASL = as("scram-sha-512")
			c.refuse(broker)
			_, err := kafka.NewPublisher(cfg)
			var refused *kafka.SignInError
			if !errors.As(err, &refused) {
				t.Fatalf("got %v, expected a SignInError", err)
			}
			for _, want := range c.says {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("the error does not say %q:\n%v", want, err)
				}
			}
		})
	}
}

// A broker that stops in the middle of a connection's life has refused nobody.
func TestLaterEndsOfConnectionsAreNoRefusals(t *testing.T) {
	t.Parallel()
	f := newFaulty(t, 1)
	client, err := kafka.NewClient(f.config())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Close() }()
	broker, err := client.Leader(topic, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := broker.Open(client.Config()); err != nil && !errors.Is(err, sarama.ErrAlreadyConnected) {
		t.Fatal(err)
	}
	for range 3 {
		if _, err := broker.GetMetadata(sarama.NewMetadataRequest(kafka.Version, nil)); err != nil {
			t.Fatal(err)
		}
	}
	f.Close()
	_, err = broker.GetMetadata(sarama.NewMetadataRequest(kafka.Version, nil))
	var closed *kafka.ClosedError
	if err == nil || errors.As(err, &closed) {
		t.Errorf("got %v, expected a plain end of the connection", err)
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

// Below TLS 1.2 nothing is said.
func TestOldTLSIsRefused(t *testing.T) {
	t.Parallel()
	authority := kafkatest.NewAuthority(t)
	old := authority.Server(t, "127.0.0.1")
	old.MinVersion, old.MaxVersion = tls.VersionTLS10, tls.VersionTLS11
	_, cfg := brokerOf(t, kfake.TLS(old))
	cfg.TLS = kafka.TLS{Enabled: true, CA: authority.File}
	var refused *kafka.TLSError
	if _, err := kafka.NewClient(cfg); !errors.As(err, &refused) {
		t.Fatalf("got %v", err)
	}
}

// A broker that hears a TLS greeting at another port hangs up.
func TestTLSAtAnotherPortIsNamed(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	defer all.Wait()
	defer func() { _ = l.Close() }()
	all.Go(func() {
		for c, err := l.Accept(); err == nil; c, err = l.Accept() {
			_, _ = c.Read(make([]byte, 1))
			_ = c.Close()
		}
	})
	_, err = kafka.NewClient(kafka.Config{Brokers: []string{l.Addr().String()}, TLS: kafka.TLS{Enabled: true}})
	if err == nil || !strings.Contains(err.Error(), "does not seem to speak TLS") || !strings.Contains(err.Error(), "--kafka-tls (FEIRA_KAFKA_TLS)") {
		t.Errorf("got %v", err)
	}
}

// listenQuietly accepts connections and says nothing.
func listenQuietly(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l.Addr().String()
}
