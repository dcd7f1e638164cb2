package kafka

import (
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/IBM/sarama"

	"github.com/feira-shop/feira/shared/events"
)

// safe is a cluster as it should be: three brokers, reached over TLS by a user.
func safe() *cluster {
	c := &cluster{
		tls: TLS{Enabled: true}, sasl: SASL{Mechanism: "scram-sha-512"}, offsets: 3,
		addresses: []string{"kafka-0.example:9093", "kafka-1.example:9093", "kafka-2.example:9093"},
	}
	for id := range int32(3) {
		c.brokers = append(c.brokers, seenBroker{id, map[string]string{autoCreate: "false", offsetsCopies: "3"}})
	}
	for _, t := range events.Topics() {
		seen := seenTopic{want: t, copies: 3, settings: map[string]string{}}
		for name, value := range (durability{3, 2}).settings(t) {
			seen.settings[name] = *value
		}
		seen.settings[maxMessage] = "1048588"
		c.topics = append(c.topics, seen)
	}
	return c
}

// of sets something of topics; none: all.
func (c *cluster) of(set func(*seenTopic), names ...string) {
	for i := range c.topics {
		if len(names) == 0 || slices.Contains(names, c.topics[i].want.Name) {
			set(&c.topics[i])
		}
	}
}

func with(name, value string) func(*seenTopic) {
	return func(t *seenTopic) { t.settings[name] = value }
}

func TestEachRiskIsNamed(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		change func(*cluster)
		name   string // "": there is none
		says   string
	}{
		"nothing":   {func(*cluster) {}, "", ""},
		"no copies": {func(c *cluster) { c.of(func(t *seenTopic) { t.copies, t.settings[minInSync] = 1, "1" }, "orders") }, RiskReplication, "of orders"},
		"two copies": {func(c *cluster) {
			c.of(func(t *seenTopic) { t.copies = 2 }, "orders", "fraud")
			c.of(with(minInSync, "1"))
			c.topics = c.topics[:1]
		}, RiskReplication + " " + RiskMinInSyncLow, "orders"},
		"one in sync":         {func(c *cluster) { c.of(with(minInSync, "1"), "orders", "payments") }, RiskMinInSyncLow, "orders, payments"},
		"all in sync":         {func(c *cluster) { c.of(with(minInSync, "3"), "loyalty") }, RiskMinInSyncHigh, "loyalty"},
		"too many in sync":    {func(c *cluster) { c.of(with(minInSync, "4"), "loyalty") }, RiskMinInSyncHigh, "loyalty"},
		"unclean elections":   {func(c *cluster) { c.of(with(uncleanLeader, "true"), "fraud") }, RiskUncleanElection, "fraud"},
		"history expires":     {func(c *cluster) { c.of(with(retentionMS, "604800000"), "inventory") }, RiskRetention, "inventory"},
		"history has a size":  {func(c *cluster) { c.of(with(retentionBytes, "1000000"), "inventory") }, RiskRetention, "inventory"},
		"catalog expires":     {func(c *cluster) { c.of(with(cleanupPolicy, "compact,delete"), "catalog") }, RiskRetention, "catalog"},
		"clicks expire":       {func(c *cluster) { c.of(with(retentionMS, "3600000"), "eventos-usuario") }, "", ""},
		"small messages":      {func(c *cluster) { c.of(with(maxMessage, "262144"), "orders") }, RiskMessageSize, "orders"},
		"just large enough":   {func(c *cluster) { c.of(with(maxMessage, strconv.Itoa(maxBatch))) }, "", ""},
		"no topic":            {func(c *cluster) { c.of(func(t *seenTopic) { t.copies, t.settings = 0, nil }, "orders") }, RiskTopicMissing, "orders"},
		"one copy of offsets": {func(c *cluster) { c.offsets = 1 }, RiskOffsets, "(1)"},
		"offsets unknown":     {func(c *cluster) { c.offsets = 0 }, "", ""},
		"topics by accident":  {func(c *cluster) { c.brokers[1].settings[autoCreate] = "true" }, RiskAutoCreate, "broker 1"},
		"in the clear":        {func(c *cluster) { c.tls.Enabled = false }, RiskUnencrypted, "kafka-0.example:9093, kafka-1.example:9093"},
		"nobody":              {func(c *cluster) { c.sasl = SASL{} }, RiskUnauthenticated, "kafka-0.example:9093"},
		"a certificate":       {func(c *cluster) { c.sasl, c.tls.Cert = SASL{}, "client.pem" }, "", ""},
		"one broker outside": {func(c *cluster) {
			c.tls, c.addresses = TLS{}, []string{"127.0.0.1:1", "kafka.example:1", "localhost:1"}
		}, RiskUnencrypted, "to broker kafka.example:1 is"},
		"on one machine": {func(c *cluster) {
			c.tls, c.sasl, c.addresses = TLS{}, SASL{}, []string{"127.0.0.1:1", "[::1]:1", "localhost:1"}
		}, "", ""},
		"others are away":  {func(c *cluster) { c.brokers = c.brokers[:1] }, "", ""},
		"may not look":     {func(c *cluster) { c.closed = []string{"broker 1", "topic orders"} }, RiskNotInspected, "broker 1, topic orders"},
		"settings unknown": {func(c *cluster) { c.of(func(t *seenTopic) { t.settings = nil }) }, "", ""},
	} {
		seen := safe()
		c.change(seen)
		risks := seen.risks()
		names := make([]string, len(risks))
		for i, r := range risks {
			names[i] = r.Name
			if !strings.Contains(r.What, c.says) {
				t.Errorf("%s: %s does not say %q: %s", what, r.Name, c.says, r.What)
			}
			if r.Do == "" || strings.Contains(r.String(), "%!") || !strings.Contains(r.String(), r.Name) {
				t.Errorf("%s: %q", what, r)
			}
		}
		if got := strings.Join(names, " "); got != c.name {
			t.Errorf("%s: found %q, expected %q", what, got, c.name)
		}
	}
}

// A broker for development gives one line; what would lose events all the same has its own.
func TestOneBrokerIsOneLine(t *testing.T) {
	t.Parallel()
	c := safe()
	c.brokers, c.offsets, c.tls, c.sasl = c.brokers[:1], 1, TLS{}, SASL{}
	c.brokers[0].settings[autoCreate] = "true"
	c.of(func(t *seenTopic) { t.copies, t.settings[minInSync] = 1, "1" })
	risks := c.risks()
	if len(risks) != 1 || risks[0].Name != RiskSingleBroker {
		t.Fatalf("got %v", risks)
	}
	for _, name := range []string{RiskReplication, RiskOffsets, RiskAutoCreate, RiskUnencrypted, RiskUnauthenticated} {
		if !strings.Contains(risks[0].What, name) {
			t.Errorf("does not name %s: %s", name, risks[0])
		}
	}
	c.of(with(retentionMS, "1000"), "orders")
	c.of(with(minInSync, "2"), "fraud")
	risks = c.risks()
	if len(risks) != 3 || risks[1].Name != RiskMinInSyncHigh || risks[2].Name != RiskRetention {
		t.Errorf("got %v", risks)
	}
}

// Brokers are spoken to at the addresses that they give themselves.
func TestBrokersAreSeenWhereTheySayTheyAre(t *testing.T) {
	t.Parallel()
	c := cluster{addresses: []string{"127.0.0.1:9092"}}
	if err := c.lookAtBrokers(namedClient{}, silentAdmin{}); err != nil {
		t.Fatal(err)
	}
	if r := c.unencrypted(); r == nil || !strings.Contains(r.What, "kafka.example:9092") {
		t.Errorf("found %v", r)
	}
}

// namedClient knows a broker by the name that it gives itself.
type namedClient struct{ sarama.Client }

func (namedClient) Brokers() []*sarama.Broker {
	return []*sarama.Broker{sarama.NewBroker("kafka.example:9092")}
}

// silentAdmin knows no settings.
type silentAdmin struct{ sarama.ClusterAdmin }

func (silentAdmin) DescribeConfigs([]*sarama.ConfigResource, sarama.DescribeConfigsOptions) ([]*sarama.ConfigResourceResult, error) {
	return nil, nil
}

// Who reads a name in the log finds it in the runbook, and so with settings.
func TestTheRunbookNamesEverything(t *testing.T) {
	t.Parallel()
	read := func(path string) string {
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return string(content)
	}
	runbook := read("../../docs/runbook.md")
	risks := regexp.MustCompile(`(?m)^\tRisk\w+ += "([a-z-]+)"`).FindAllStringSubmatch(read("risks.go"), -1)
	settings := regexp.MustCompile(`\b(FEIRA_\w+)`).FindAllStringSubmatch(read("security.go")+read("copies.go"), -1)
	if len(risks) < 13 || len(settings) < 10 {
		t.Fatalf("found %d risks and %d settings", len(risks), len(settings))
	}
	for _, name := range append(risks, settings...) {
		if !strings.Contains(runbook, "`"+name[1]+"`") {
			t.Errorf("docs/runbook.md does not name %s", name[1])
		}
	}
}
