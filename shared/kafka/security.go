package kafka

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"

	"github.com/IBM/sarama"
)

// The settings of a connection, as feira's commands call them.
const (
	flagBrokers    = "--kafka (FEIRA_KAFKA)"
	flagTLS        = "--kafka-tls (FEIRA_KAFKA_TLS)"
	flagCA         = "--kafka-ca (FEIRA_KAFKA_CA)"
	flagCert       = "--kafka-cert (FEIRA_KAFKA_CERT)"
	flagKey        = "--kafka-key (FEIRA_KAFKA_KEY)"
	flagServerName = "--kafka-server-name (FEIRA_KAFKA_SERVER_NAME)"
	flagSASL       = "--kafka-sasl (FEIRA_KAFKA_SASL)"
	flagUser       = "--kafka-user (FEIRA_KAFKA_USER)"
	flagPassword   = "--kafka-password-file (FEIRA_KAFKA_PASSWORD_FILE, or FEIRA_KAFKA_PASSWORD)"
)

// TLS says how brokers are known, and how they know this client. The files are read at each new connection, so a
// certificate that was renewed needs no restart.
type TLS struct {
	Enabled    bool
	CA         string // file of the authorities (PEM) that sign the brokers' certificates; "": the system's
	Cert, Key  string // files of this client's certificate and key (PEM), for brokers that ask for one; both or none
	ServerName string // name that each broker's certificate must carry; "": the host of the broker's address
}

// SASL says who this client is. The zero value signs in as nobody.
type SASL struct {
	Mechanism string // SCRAM-SHA-512, SCRAM-SHA-256 or PLAIN, in any case
	User      string
	Password  Secret
}

// String says who signs in and how.
func (s SASL) String() string {
	if !s.enabled() {
		return "nobody"
	}
	return s.User + " by " + string(s.mechanism())
}

// Secret is a text that shows itself only to who converts it: printed, logged or encoded it is a placeholder.
type Secret string

const redacted = "[redacted]"

// String implements [fmt.Stringer].
func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return redacted
}

// Format implements [fmt.Formatter] for every verb.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(s.String())) }

// MarshalText implements [encoding.TextMarshaler], which JSON and slog use.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// ConfigError lists everything that is wrong with settings, each with the flag and the variable that mend it.
type ConfigError struct {
	Problems []error
}

func (e *ConfigError) Error() string {
	texts := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		texts[i] = p.Error()
	}
	return "kafka: " + strings.Join(texts, "\n")
}

func (e *ConfigError) Unwrap() []error { return e.Problems }

func wrong(problems []error) error {
	if len(problems) == 0 {
		return nil
	}
	return &ConfigError{Problems: problems}
}

// Validate looks at the settings, and at the files they name, without connecting. Errors: [*ConfigError].
func (c Config) Validate() error {
	var problems []error
	if len(c.Brokers) == 0 {
		problems = append(problems, fmt.Errorf("no broker to talk to; set %s", flagBrokers))
	}
	for _, b := range c.Brokers {
		if _, _, err := net.SplitHostPort(b); err != nil {
			problems = append(problems, fmt.Errorf("%s: %q is no address; expected host:port, such as broker.example:9092", flagBrokers, b))
		}
	}
	problems = append(problems, c.TLS.problems()...)
	problems = append(problems, c.SASL.problems()...)
	if c.SASL.plain() && !c.TLS.Enabled {
		for _, b := range c.Brokers {
			if !loopback(b) {
				problems = append(problems, &CleartextPasswordError{Broker: b})
			}
		}
	}
	return wrong(problems)
}

func (t TLS) problems() []error {
	if !t.Enabled {
		var problems []error
		for _, set := range []struct{ flag, value string }{{flagCA, t.CA}, {flagCert, t.Cert}, {flagKey, t.Key}, {flagServerName, t.ServerName}} {
			if set.value != "" {
				problems = append(problems, fmt.Errorf("%s is set, but the connection is not encrypted; add %s", set.flag, flagTLS))
			}
		}
		return problems
	}
	_, problems := t.config()
	return problems
}

// config reads the files.
func (t TLS) config() (*tls.Config, []error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: t.ServerName}
	var problems []error
	if t.CA != "" {
		pem, err := os.ReadFile(t.CA)
		c.RootCAs = x509.NewCertPool()
		switch {
		case err != nil:
			problems = append(problems, fmt.Errorf("%s: %w", flagCA, err))
		case !c.RootCAs.AppendCertsFromPEM(pem):
			problems = append(problems, fmt.Errorf("%s: %s holds no certificate; expected PEM, -----BEGIN CERTIFICATE-----", flagCA, t.CA))
		}
	}
	switch {
	case t.Cert == "" && t.Key == "":
	case t.Key == "":
		problems = append(problems, fmt.Errorf("%s is set, but its key is not; add %s", flagCert, flagKey))
	case t.Cert == "":
		problems = append(problems, fmt.Errorf("%s is set, but its certificate is not; add %s", flagKey, flagCert))
	default:
		pair, err := tls.LoadX509KeyPair(t.Cert, t.Key)
		if err != nil {
			problems = append(problems, fmt.Errorf("%s, %s: %w", flagCert, flagKey, err))
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c, problems
}

func (s SASL) enabled() bool { return s.Mechanism != "" }

func (s SASL) plain() bool { return s.mechanism() == sarama.SASLTypePlaintext }

func (s SASL) mechanism() sarama.SASLMechanism {
	return sarama.SASLMechanism(strings.ToUpper(s.Mechanism))
}

func (s SASL) problems() []error {
	var problems []error
	if !s.enabled() {
		if s.User != "" || s.Password != "" {
			problems = append(problems, fmt.Errorf("there is a user or a password, but no way to sign in; set %s to scram-sha-512, scram-sha-256 or plain", flagSASL))
		}
		return problems
	}
	hash := scramHash(s.mechanism())
	if hash == nil && !s.plain() {
		problems = append(problems, fmt.Errorf("%s: %q is unknown; expected scram-sha-512, scram-sha-256 or plain", flagSASL, s.Mechanism))
	}
	if s.User == "" {
		problems = append(problems, fmt.Errorf("signing in needs a user; set %s", flagUser))
	}
	if s.Password == "" {
		problems = append(problems, fmt.Errorf("signing in needs a password; set %s", flagPassword))
	}
	if hash != nil {
		if _, err := hash.NewClient(s.User, string(s.Password), ""); err != nil {
			problems = append(problems, errUnprepared)
		}
	}
	return problems
}

// errUnprepared hides its cause, which would quote a character of the password.
var errUnprepared = errors.New("user or password has characters that SCRAM does not allow, such as control characters; change it, or " + flagPassword)

// loopback says whether an address is on this machine, as far as can be told without asking for its name.
func loopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	if host == "localhost" {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}
