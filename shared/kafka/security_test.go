package kafka_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/feira-shop/feira/shared/kafka"
	"github.com/feira-shop/feira/shared/kafka/kafkatest"
)

func TestSettingsThatCannotWorkAreNamed(t *testing.T) {
	t.Parallel()
	authority := kafkatest.NewAuthority(t)
	cert, key := authority.Issue(t, "client")
	_, other := authority.Issue(t, "other")
	absent := filepath.Join(t.TempDir(), "absent.pem")
	for name, c := range map[string]struct {
		change func(*kafka.Config)
		says   []string // one for each problem; none: nothing is wrong
	}{
		"nothing":            {func(*kafka.Config) {}, nil},
		"no broker":          {func(c *kafka.Config) { c.Brokers = nil }, []string{"--kafka (FEIRA_KAFKA)"}},
		"no port":            {func(c *kafka.Config) { c.Brokers = []string{"a:1", "kafka"} }, []string{`--kafka (FEIRA_KAFKA): "kafka"`}},
		"CA without TLS":     {func(c *kafka.Config) { c.TLS.CA = authority.File }, []string{"--kafka-ca (FEIRA_KAFKA_CA) is set, but"}},
		"name without TLS":   {func(c *kafka.Config) { c.TLS.ServerName = "k" }, []string{"--kafka-server-name (FEIRA_KAFKA_SERVER_NAME) is set, but"}},
		"system's CA":        {func(c *kafka.Config) { c.TLS = kafka.TLS{Enabled: true} }, nil},
		"certificate":        {func(c *kafka.Config) { c.TLS = kafka.TLS{Enabled: true, Cert: cert, Key: key} }, nil},
		"no key":             {func(c *kafka.Config) { c.TLS = kafka.TLS{Enabled: true, Cert: cert} }, []string{"add --kafka-key (FEIRA_KAFKA_KEY)"}},
		"no certificate":     {func(c *kafka.Config) { c.TLS = kafka.TLS{Enabled: true, Key: key} }, []string{"add --kafka-cert (FEIRA_KAFKA_CERT)"}},
		"another's key":      {func(c *kafka.Config) { c.TLS = kafka.TLS{Enabled: true, Cert: cert, Key: other} }, []string{"--kafka-cert (FEIRA_KAFKA_CERT), --kafka-key (FEIRA_KAFKA_KEY)"}},
		"no file":            {func(c *kafka.Config) { c.TLS = kafka.TLS{Enabled: true, CA: absent} }, []string{absent}},
		"not a certificate":  {func(c *kafka.Config) { c.TLS = kafka.TLS{Enabled: true, CA: key} }, []string{"holds no certificate"}},
		"user without SASL":  {func(c *kafka.Config) { c.SASL.User = user }, []string{"--kafka-sasl (FEIRA_KAFKA_SASL)"}},
		"user only":          {func(c *kafka.Config) { c.SASL = kafka.SASL{Mechanism: "scram-sha-512", User: user} }, []string{"--kafka-password-file (FEIRA_KAFKA_PASSWORD_FILE, or FEIRA_KAFKA_PASSWORD)"}},
		"password only":      {func(c *kafka.Config) { c.SASL = kafka.SASL{Mechanism: "scram-sha-512", Password: password} }, []string{"--kafka-user (FEIRA_KAFKA_USER)"}},
		"unknown mechanism":  {func(c *kafka.Config) { c.SASL = as("scram-sha-1") }, []string{`"scram-sha-1" is unknown`}},
		"unusable password":  {func(c *kafka.Config) { c.SASL = as("scram-sha-256"); c.SASL.Password = "se\x07cret" }, []string{"characters that SCRAM does not allow"}},
		"PLAIN in the clear": {func(c *kafka.Config) { c.SASL = as("plain"); c.Brokers = []string{"127.0.0.1:1", "kafka.example:9092"} }, []string{"to broker kafka.example:9092 in clear text; add --kafka-tls"}},
		"PLAIN at home": {func(c *kafka.Config) {
			c.SASL = as("PLAIN")
			c.Brokers = []string{"127.0.0.1:1", "[::1]:1", "localhost:1"}
		}, nil},
		"PLAIN over TLS":     {func(c *kafka.Config) { c.SASL = as("plain"); c.TLS.Enabled = true }, nil},
		"SCRAM in the clear": {func(c *kafka.Config) { c.SASL = as("scram-sha-512") }, nil},
		"all at once": {func(c *kafka.Config) {
			c.Brokers = []string{"kafka"}
			c.TLS = kafka.TLS{Enabled: true, CA: absent, Cert: cert}
			c.SASL = kafka.SASL{Mechanism: "gssapi"}
		}, []string{`"kafka"`, absent, "--kafka-key", `"gssapi"`, "--kafka-user", "--kafka-password"}},
	} {
		cfg := kafka.Config{Brokers: []string{"kafka.example:9092"}}
		c.change(&cfg)
		err := cfg.Validate()
		var wrong *kafka.ConfigError
		switch {
		case len(c.says) == 0 && err != nil:
			t.Errorf("%s: %v", name, err)
		case len(c.says) == 0:
		case !errors.As(err, &wrong) || len(wrong.Problems) != len(c.says):
			t.Errorf("%s: got %v, expected %d problems", name, err, len(c.says))
		default:
			for i, want := range c.says {
				if !strings.Contains(wrong.Problems[i].Error(), want) {
					t.Errorf("%s: problem %d does not say %q: %v", name, i, want, wrong.Problems[i])
				}
			}
			if text := err.Error(); strings.Contains(text, password) || strings.Contains(text, "U+0007") || strings.Contains(text, "cret") && name == "unusable password" {
				t.Errorf("%s: the error shows the password: %v", name, err)
			}
		}
	}
}

// Whatever prints, logs or encodes a configuration, the password does not show.
func TestPasswordsDoNotShow(t *testing.T) {
	t.Parallel()
	cfg := kafka.Config{Brokers: []string{"kafka.example:9092"}, TLS: kafka.TLS{Enabled: true}, SASL: as("scram-sha-512")}
	holder := struct {
		Kafka kafka.Config
		SASL  kafka.SASL
		At    *kafka.SASL
	}{cfg, cfg.SASL, &cfg.SASL}
	var out bytes.Buffer
	for _, value := range []any{cfg, &cfg, cfg.SASL, &cfg.SASL, cfg.SASL.Password, holder, &holder, []any{cfg.SASL}} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q"} {
			fmt.Fprintf(&out, verb+"\n", value)
		}
		for _, log := range []*slog.Logger{slog.New(slog.NewJSONHandler(&out, nil)), slog.New(slog.NewTextHandler(&out, nil))} {
			log.Info("x", "value", value)
		}
		encoded, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		out.Write(encoded)
	}
	if i := strings.Index(out.String(), "sesame"); i >= 0 {
		t.Errorf("the password shows: …%s…", out.String()[max(0, i-200):i+20])
	}
	for _, want := range []string{"kafka.example:9092", "over TLS", "as feira by SCRAM-SHA-512", "[redacted]"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q does not show", want)
		}
	}
	if string(cfg.SASL.Password) != password {
		t.Error("the password is lost")
	}
}

// A client that was made in another way would connect without TLS and sign-in.
func TestAllClientsAreMadeHere(t *testing.T) {
	t.Parallel()
	seen := 0
	look := func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") ||
			strings.Contains(path, "shared/kafka/") || strings.Contains(path, "shoptest/") { // tests look with another client
			return err
		}
		source, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		seen++
		for _, call := range []string{
			"sarama.NewConfig(", "sarama.NewClient(", "sarama.NewClusterAdmin(", "sarama.NewConsumer(", "sarama.NewConsumerGroup(",
			"sarama.NewSyncProducer(", "sarama.NewAsyncProducer(", "sarama.NewBroker(", "kgo.NewClient(",
		} {
			if bytes.Contains(source, []byte(call)) {
				t.Errorf("%s calls %s; clients come from shared/kafka", path, strings.TrimSuffix(call, "("))
			}
		}
		for _, call := range []string{"kafka.NewSubscriber(wkafka", "wkafka.NewSubscriber(", "wkafka.NewPublisher("} {
			if bytes.Contains(source, []byte(call)) && !bytes.Contains(source, []byte("kafka.ConsumerConfig(")) {
				t.Errorf("%s calls %s without kafka.ConsumerConfig", path, strings.TrimSuffix(call, "("))
			}
		}
		return nil
	}
	for _, dir := range []string{"cmd", "internal", "services", "shared", "sim"} {
		if err := filepath.WalkDir(filepath.Join("../..", dir), look); err != nil {
			t.Error(err)
		}
	}
	if seen < 50 {
		t.Errorf("looked at %d files only", seen)
	}
}

// The broker's kernel accepts connections also while the broker is frozen.
func TestAFrozenBrokerDoesNotHoldUpAHandshake(t *testing.T) {
	t.Parallel()
	address := listenQuietly(t)
	began := time.Now()
	_, err := kafka.DialTLS(kafka.TLS{Enabled: true}, 50*time.Millisecond, address)
	var refused *kafka.TLSError
	if !errors.As(err, &refused) || !strings.Contains(err.Error(), "did not finish the handshake") {
		t.Errorf("got %v", err)
	}
	if took := time.Since(began); took > patience/2 {
		t.Errorf("took %s", took)
	}
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	content, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(to, content, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}
