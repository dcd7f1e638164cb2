package kafka_test

import (
	"crypto/tls"
	"errors"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/IBM/sarama"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/feira-shop/feira/shared/kafka"
	"github.com/feira-shop/feira/shared/kafka/kafkatest"
)

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
