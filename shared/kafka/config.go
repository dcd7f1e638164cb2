package kafka

import (
	"log/slog"
	"strings"
	"time"

	"github.com/IBM/sarama"
	"github.com/rcrowley/go-metrics"
)

// Sarama would keep histograms for every broker and topic that a client has ever met, which nobody reads: what counts here
// are the metrics of relays and operators. It is told so in its own way, for the whole process, before the first client.
func init() { metrics.UseNilMetrics = true }

// Version is the protocol version spoken to brokers. It must be at least 2.8, because topic ids, by which a
// recreated topic is recognised, come with it; brokers down to 3.6 understand it, and so does Kafka 4.
var Version = sarama.V3_6_0_0

// The timing of consumer groups and connections. They depend on each other, see [ConsumerConfig].
const (
	sessionTimeout    = 10 * time.Second // a killed member without a stable id is noticed after this
	heartbeatInterval = 1 * time.Second  // also how soon members learn of a rebalance
	rebalanceTimeout  = 15 * time.Second // how long members may take to give up their partitions
	readTimeout       = 20 * time.Second // JoinGroup answers only when the rebalance is over
	metadataRefresh   = 15 * time.Second // a new leader or partition is noticed after this at the latest
)

// Config says where Kafka is, and how to connect. The zero TLS and SASL are a plain connection of nobody.
type Config struct {
	Brokers  []string     // addresses host:port of some brokers
	ClientID string       // name shown in the broker's logs and quotas; "" is "feira"
	Log      *slog.Logger // nil: discard
	TLS      TLS
	SASL     SASL
}

// String says what can be shown, without the password.
func (c Config) String() string {
	s := "kafka " + strings.Join(c.Brokers, ",")
	if c.TLS.Enabled {
		s += " over TLS"
	}
	if c.SASL.enabled() {
		s += " as " + c.SASL.String()
	}
	return s
}

// LogValue implements [slog.LogValuer].
func (c Config) LogValue() slog.Value { return slog.StringValue(c.String()) }

func (c Config) log() *slog.Logger {
	if c.Log == nil {
		return slog.New(slog.DiscardHandler)
	}
	return c.Log
}

// NewClient connects to Kafka for metadata, offsets and administration. It fails when no broker answers.
func NewClient(cfg Config) (sarama.Client, error) { return newClient(cfg, baseConfig(cfg)) }

func newClient(cfg Config, c *sarama.Config) (sarama.Client, error) {
	client, err := sarama.NewClient(cfg.Brokers, c)
	if err != nil {
		return nil, explain(cfg, err)
	}
	return client, nil
}

// baseConfig is what all clients have in common. Sarama's own defaults would lose events: they speak protocol
// 2.1, start at the newest offset, replace a lost offset in silence and acknowledge on one replica.
func baseConfig(cfg Config) *sarama.Config {
	c := sarama.NewConfig()
	c.Version = Version
	c.ClientID = cfg.ClientID
	if c.ClientID == "" {
		c.ClientID = "feira"
	}
	c.Net.DialTimeout, c.Net.KeepAlive = dialTimeout, keepAlive // the dialer's own; for sarama's checks
	c.Net.ReadTimeout = readTimeout
	c.Net.WriteTimeout = 5 * time.Second
	c.Net.Proxy.Enable, c.Net.Proxy.Dialer = true, dialer{cfg.TLS, cfg.SASL, handshakeTimeout} // does TLS
	signIn(c, cfg.SASL)
	c.Net.MaxOpenRequests = 1 // a second request in flight could overtake the first one's retry
	c.Metadata.RefreshFrequency = metadataRefresh
	c.Metadata.AllowAutoTopicCreation = false // a misspelt topic is an error, not a new topic
	c.Metadata.Retry.Max = 3
	c.Metadata.Retry.Backoff = 100 * time.Millisecond
	c.Consumer.MaxWaitTime = 100 * time.Millisecond // readers of a range close after this
	c.Consumer.Return.Errors = true
	c.Producer.RequiredAcks = sarama.WaitForAll
	c.Producer.Idempotent = true
	c.Producer.Partitioner = sarama.NewMurmur2Partitioner // as Java's clients do
	c.Producer.Return.Successes = true
	c.Producer.Return.Errors = true
	return c
}

func signIn(c *sarama.Config, s SASL) {
	if !s.enabled() {
		return
	}
	c.Net.SASL.Enable = true
	c.Net.SASL.Mechanism = s.mechanism()
	c.Net.SASL.User, c.Net.SASL.Password = s.User, string(s.Password)
	if hash := scramHash(s.mechanism()); hash != nil {
		c.Net.SASL.SCRAMClientGeneratorFunc = func() sarama.SCRAMClient { return &exchange{hash: hash} }
	}
}

// ConsumerConfig is the configuration of a consumer group member. instanceID is its stable name within the
// group: a member that crashes and starts again gets its partitions back at once, where a nameless one would
// first have to time out. Two processes must never use one instanceID in one group.
func ConsumerConfig(cfg Config, instanceID string) *sarama.Config {
	c := baseConfig(cfg)
	c.Consumer.Offsets.Initial = sarama.OffsetOldest
	c.Consumer.Offsets.AutoCommit.Enable = true // commits what was marked, after the database committed it
	c.Consumer.Offsets.AutoCommit.Interval = time.Second
	c.Consumer.Group.ResetInvalidOffsets = false // lost history is a named stop, never a silent jump
	c.Consumer.Group.Session.Timeout = sessionTimeout
	c.Consumer.Group.Heartbeat.Interval = heartbeatInterval
	c.Consumer.Group.Rebalance.Timeout = rebalanceTimeout
	// Never cooperative-sticky: Setup does not run for claims that are added to a running session.
	c.Consumer.Group.Rebalance.GroupStrategies = []sarama.BalanceStrategy{sarama.NewBalanceStrategyRange()}
	c.Consumer.Group.InstanceId = instanceID
	c.Consumer.IsolationLevel = sarama.ReadCommitted
	c.Consumer.MaxProcessingTime = time.Second
	c.Consumer.MaxWaitTime = 500 * time.Millisecond
	c.ChannelBufferSize = 1024
	return c
}
