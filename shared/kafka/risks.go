package kafka

import (
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"

	"github.com/feira-shop/feira/shared/events"
)

// Risk is something about a cluster, or the connection to it, that can lose events, stall them or show them to others.
type Risk struct {
	Name string // one of the Risk constants
	What string // is so, and where
	Do   string // to mend it
}

// The names of risks.
const (
	RiskSingleBroker    = "single-broker"    // one broker only; says all that follows from it, and what is usual in development
	RiskReplication     = "replication"      // fewer than three copies of a topic
	RiskMinInSyncLow    = "min-insync-low"   // an acknowledged event may be on one broker only
	RiskMinInSyncHigh   = "min-insync-high"  // no broker may fail, or nothing can be written at all
	RiskUncleanElection = "unclean-election" // a broker that lacks events may become the leader
	RiskRetention       = "retention"        // the shop's history expires
	RiskMessageSize     = "message-size"     // events or batches of a permitted size are refused
	RiskTopicMissing    = "topic-missing"    // services wait for it
	RiskOffsets         = "offsets"          // consumer groups stop with one broker
	RiskAutoCreate      = "auto-create"      // a misspelt topic comes to be
	RiskUnencrypted     = "unencrypted"      // others on the network can read and change what is sent
	RiskUnauthenticated = "unauthenticated"  // the brokers do not know who writes
	RiskNotInspected    = "not-inspected"    // this user may not look
)

// usual are the risks that a development cluster of one broker has anyway.
var usual = []string{RiskReplication, RiskMinInSyncLow, RiskUncleanElection, RiskOffsets, RiskAutoCreate, RiskUnencrypted, RiskUnauthenticated}

// enoughCopies survive the loss of one broker while another is down for maintenance.
const enoughCopies = 3

// String implements [fmt.Stringer].
func (r Risk) String() string { return r.Name + ": " + r.What + "; " + r.Do }

// LogValue implements [slog.LogValuer].
func (r Risk) LogValue() slog.Value {
	return slog.GroupValue(slog.String("name", r.Name), slog.String("what", r.What), slog.String("do", r.Do))
}

// risks judges what was seen.
func (c *cluster) risks() []Risk {
	var all []Risk
	for _, judge := range []func() *Risk{
		c.replication, c.minInSyncLow, c.minInSyncHigh, c.unclean, c.retention, c.messageSize, c.missing,
		c.offsetsCopies, c.autoCreate, c.unencrypted, c.unauthenticated, c.notInspected,
	} {
		if r := judge(); r != nil {
			all = append(all, *r)
		}
	}
	if !c.single() {
		return all
	}
	var also []string
	all = slices.DeleteFunc(all, func(r Risk) bool {
		if !slices.Contains(usual, r.Name) {
			return false
		}
		also = append(also, r.Name)
		return true
	})
	what := "the cluster is one broker, as in development: the events live and die with its disk"
	if len(also) > 0 {
		what += " (also: " + strings.Join(also, ", ") + ")"
	}
	return append([]Risk{{RiskSingleBroker, what, "in production run at least three"}}, all...)
}

// single tells one broker from the last that is left of several.
func (c *cluster) single() bool {
	return len(c.brokers) <= 1 && !slices.ContainsFunc(c.topics, func(t seenTopic) bool { return t.copies > 1 })
}

// which names the topics for which something holds.
func (c *cluster) which(holds func(seenTopic) bool) string {
	var names []string
	for _, t := range c.topics {
		if t.copies > 0 && holds(t) {
			names = append(names, t.want.Name)
		}
	}
	return strings.Join(names, ", ")
}

// risk is nil where nobody is concerned. In what, %s stands for who is.
func risk(name, whom, what, do string) *Risk {
	if whom == "" {
		return nil
	}
	return &Risk{name, fmt.Sprintf(what, whom), do}
}

func (c *cluster) replication() *Risk {
	return risk(RiskReplication, c.which(func(t seenTopic) bool { return t.copies < enoughCopies }),
		"fewer than three copies of %s",
		"raise the replication factor with kafka-reassign-partitions; new topics get it from feira migrate --replication (FEIRA_KAFKA_REPLICATION)")
}

func (c *cluster) minInSyncLow() *Risk {
	return risk(RiskMinInSyncLow, c.which(func(t seenTopic) bool { return t.copies > 1 && t.number(minInSync, 2) < 2 }),
		"min.insync.replicas is 1 for %s: an event may be acknowledged while only one broker has it",
		"feira migrate --min-insync 2 (FEIRA_KAFKA_MIN_INSYNC), where there are three copies")
}

func (c *cluster) minInSyncHigh() *Risk {
	return risk(RiskMinInSyncHigh, c.which(func(t seenTopic) bool {
		n := t.number(minInSync, 1)
		return n > 1 && n >= int64(t.copies)
	}), "min.insync.replicas is not below the number of copies of %s: while one broker is away, nothing can be written",
		"one less than the copies: feira migrate --min-insync N (FEIRA_KAFKA_MIN_INSYNC), or add copies")
}

func (c *cluster) unclean() *Risk {
	return risk(RiskUncleanElection, c.which(func(t seenTopic) bool { return t.settings[uncleanLeader] == "true" }),
		"unclean.leader.election.enable is true for %s: a broker that lacks acknowledged events may become the leader",
		"set it to false with kafka-configs")
}

func (c *cluster) retention() *Risk {
	expires := func(name string, t seenTopic) bool { return t.settings[name] != "" && t.settings[name] != "-1" }
	return risk(RiskRetention, c.which(func(t seenTopic) bool {
		switch {
		case t.want.Compacted:
			return strings.Contains(t.settings[cleanupPolicy], "delete")
		case t.want.Retention == events.Forever:
			return expires(retentionMS, t) || expires(retentionBytes, t)
		}
		return false
	}), "records of %s expire, and they are the shop's history",
		"set retention.ms and retention.bytes to -1 with kafka-configs; cleanup.policy of catalog to compact")
}

func (c *cluster) messageSize() *Risk {
	return risk(RiskMessageSize, c.which(func(t seenTopic) bool { return t.number(maxMessage, maxBatch) < maxBatch }),
		fmt.Sprintf("max.message.bytes of %%s is below %d, the size up to which relays send batches", maxBatch),
		"raise it with kafka-configs, or message.max.bytes of the brokers")
}

func (c *cluster) missing() *Risk {
	var names []string
	for _, t := range c.topics {
		if t.copies == 0 {
			names = append(names, t.want.Name)
		}
	}
	return risk(RiskTopicMissing, strings.Join(names, ", "), "there is no topic %s", "run feira migrate")
}

func (c *cluster) offsetsCopies() *Risk {
	if c.offsets == 0 || c.offsets >= enoughCopies {
		return nil
	}
	return &Risk{RiskOffsets, fmt.Sprintf("consumer groups keep their state in fewer than three copies (%d): with a broker, groups stop", c.offsets),
		"set offsets.topic.replication.factor to 3 before the first group; later, kafka-reassign-partitions for " + offsetsTopic}
}

func (c *cluster) autoCreate() *Risk {
	var ids []string
	for _, b := range c.brokers {
		if b.settings[autoCreate] == "true" {
			ids = append(ids, strconv.Itoa(int(b.id)))
		}
	}
	return risk(RiskAutoCreate, strings.Join(ids, ", "),
		"auto.create.topics.enable is on at broker %s: another client's misspelt topic comes to be, with settings of nobody's choice",
		"set it to false in the brokers' configuration")
}

// outside are the brokers that are reached over a network.
func (c *cluster) outside() string {
	return strings.Join(slices.DeleteFunc(slices.Clone(c.addresses), loopback), ", ")
}

func (c *cluster) unencrypted() *Risk {
	if c.tls.Enabled {
		return nil
	}
	return risk(RiskUnencrypted, c.outside(), "the connection to broker %s is not encrypted", "use a TLS listener with "+flagTLS)
}

func (c *cluster) unauthenticated() *Risk {
	if c.sasl.enabled() || c.tls.Cert != "" {
		return nil
	}
	return risk(RiskUnauthenticated, c.outside(), "nobody signs in at broker %s: whoever reaches it can write events",
		"give feira a user with "+flagSASL+", or a certificate with "+flagCert)
}

func (c *cluster) notInspected() *Risk {
	return risk(RiskNotInspected, strings.Join(c.closed, ", "), "this user may not read the settings of %s", "allow it "+describeConfig)
}

// number reads a setting; where it is not known, it is as it should be.
func (t seenTopic) number(name string, unknown int64) int64 {
	if n, err := strconv.ParseInt(t.settings[name], 10, 64); err == nil {
		return n
	}
	return unknown
}
