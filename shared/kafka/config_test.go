package kafka

import (
	"errors"
	"net"
	"testing"
	"time"

	"github.com/IBM/sarama"
)

// The effective configuration, point by point. Each of these has lost, reordered or delayed events when it was
// something else.
func TestEffectiveConfiguration(t *testing.T) {
	t.Parallel()
	c := ConsumerConfig(Config{ClientID: "inventory"}, "inventory-0")
	if err := c.Validate(); err != nil {
		t.Fatalf("sarama refuses the configuration: %v", err)
	}
	for name, ok := range map[string]bool{
		"protocol at least 2.8":            c.Version.IsAtLeast(sarama.V2_8_0_0),
		"client id":                        c.ClientID == "inventory",
		"start at the oldest offset":       c.Consumer.Offsets.Initial == sarama.OffsetOldest,
		"no silent reset":                  !c.Consumer.Group.ResetInvalidOffsets,
		"read committed":                   c.Consumer.IsolationLevel == sarama.ReadCommitted,
		"session 10 s":                     c.Consumer.Group.Session.Timeout == 10*time.Second,
		"heartbeat 1 s":                    c.Consumer.Group.Heartbeat.Interval == time.Second,
		"rebalance 15 s":                   c.Consumer.Group.Rebalance.Timeout == 15*time.Second,
		"rebalance below the read timeout": c.Consumer.Group.Rebalance.Timeout < c.Net.ReadTimeout,
		"only the range strategy": len(c.Consumer.Group.Rebalance.GroupStrategies) == 1 &&
			c.Consumer.Group.Rebalance.GroupStrategies[0].Name() == sarama.RangeBalanceStrategyName,
		"stable member":               c.Consumer.Group.InstanceId == "inventory-0",
		"marked offsets are sent":     c.Consumer.Offsets.AutoCommit.Enable && c.Consumer.Offsets.AutoCommit.Interval == time.Second,
		"errors are returned":         c.Consumer.Return.Errors && c.Producer.Return.Errors && c.Producer.Return.Successes,
		"metadata every 10 to 30 s":   c.Metadata.RefreshFrequency >= 10*time.Second && c.Metadata.RefreshFrequency <= 30*time.Second,
		"no topics by accident":       !c.Metadata.AllowAutoTopicCreation,
		"acknowledged by all":         c.Producer.RequiredAcks == sarama.WaitForAll,
		"idempotent":                  c.Producer.Idempotent,
		"one request in flight":       c.Net.MaxOpenRequests == 1,
		"TCP keepalive at most 5 s":   c.Net.KeepAlive > 0 && c.Net.KeepAlive <= 5*time.Second,
		"default client id is feira":  ConsumerConfig(Config{}, "").ClientID == "feira",
		"plain clients are as strict": baseConfig(Config{}).Producer.RequiredAcks == sarama.WaitForAll,
	} {
		if !ok {
			t.Errorf("not so: %s", name)
		}
	}
}

// Keys must land where Java's producers put them, or one key would be split over two partitions.
func TestPartitionerIsThatOfJava(t *testing.T) {
	t.Parallel()
	// org.apache.kafka.common.utils.Utils.murmur2 of "21" is -973932308, of "foobar" -790332482.
	for key, hash := range map[string]int32{"21": -973932308, "foobar": -790332482} {
		if got, want := Partition(key, 1, 6), (hash&0x7fffffff)%6; got != want {
			t.Errorf("partition of %q = %d, Java's is %d", key, got, want)
		}
	}
	for position := range int64(20) {
		if got := Partition("", position, 6); got != int32(position%6) {
			t.Errorf("an event without a key at position %d goes to %d", position, got)
		}
	}
}

// The address that was reached decides, since brokers name each other as they like.
func TestPasswordsAreNotSentInTheClear(t *testing.T) {
	t.Parallel()
	plain := dialer{sasl: SASL{Mechanism: "plain", User: "feira", Password: "x"}}
	var refused *CleartextPasswordError
	if _, err := plain.secure(reached("10.1.2.3"), "localhost:9092"); !errors.As(err, &refused) || refused.Broker != "localhost:9092" {
		t.Errorf("got %v", err)
	}
	if _, err := plain.secure(reached("127.0.0.1"), "kafka.example:9092"); err != nil {
		t.Errorf("on this machine: %v", err)
	}
	scram := dialer{sasl: SASL{Mechanism: "scram-sha-256", User: "feira", Password: "x"}}
	if _, err := scram.secure(reached("10.1.2.3"), "kafka.example:9092"); err != nil {
		t.Errorf("SCRAM sends no password: %v", err)
	}
}

func TestSignInIsPassedOn(t *testing.T) {
	t.Parallel()
	cfg := Config{SASL: SASL{Mechanism: "scram-sha-512", User: "feira", Password: "x"}, TLS: TLS{Enabled: true}}
	for name, c := range map[string]*sarama.Config{"base": baseConfig(cfg), "publisher": publisherConfig(cfg), "consumer": ConsumerConfig(cfg, "member")} {
		s := c.Net.SASL
		if !s.Enable || s.Mechanism != sarama.SASLTypeSCRAMSHA512 || s.User != "feira" || s.Password != "x" || s.SCRAMClientGeneratorFunc == nil {
			t.Errorf("%s: %+v", name, s.Mechanism)
		}
		if d, ok := c.Net.Proxy.Dialer.(dialer); !ok || !c.Net.Proxy.Enable || !d.tls.Enabled || d.handshake != handshakeTimeout {
			t.Errorf("%s does not use the dialer", name)
		}
		if err := c.Validate(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// reached is a connection to an address.
type reachedConn struct {
	net.Conn
	ip string
}

func reached(ip string) net.Conn { return reachedConn{ip: ip} }

func (c reachedConn) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.ParseIP(c.ip), Port: 9092} }
