//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/feira-shop/feira/shared/events"
)

// Groups of the shop: operator and topic.
const (
	payGroup     = "payments.pay.orders"
	loyaltyGroup = "loyalty.account.payments"
)

// Groups of ours, that the shop knows nothing of.
const (
	replayGroup = "e2e-replay"
	cardsGroup  = "e2e-cards"
)

// connect makes a client of Kafka that ends with the test.
func (s *stack) connect(t *testing.T, opts ...kgo.Opt) *kgo.Client {
	t.Helper()
	client, err := kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(s.brokers...)}, opts...)...)
	must(t, err)
	t.Cleanup(client.Close)
	return client
}

// spread is how many partitions each member of a group has, by the name of the process.
func spread(ctx context.Context, client *kgo.Client, group string) (map[string]int, error) {
	found, err := kadm.NewClient(client).DescribeGroups(ctx, group)
	if err != nil {
		return nil, err
	}
	g := found[group]
	if g.Err != nil || g.State != "Stable" {
		return nil, fmt.Errorf("the group %s is %s, %w", group, g.State, g.Err)
	}
	members := map[string]int{}
	for _, m := range g.Members {
		name := m.MemberID
		if m.InstanceID != nil {
			name = *m.InstanceID
		}
		assigned, _ := m.Assigned.AsConsumer() // what is no assignment has no partitions
		for _, t := range assigned.Topics {
			members[name] += len(t.Partitions)
		}
	}
	return members, nil
}

// awaitSpread waits until the partitions of a group are spread over so many members.
func (s *stack) awaitSpread(t *testing.T, group string, members int) map[string]int {
	t.Helper()
	client := s.connect(t)
	var last map[string]int
	must(t, await(t.Context(), fmt.Sprintf("%d members of %s", members, group), func(ctx context.Context) (err error) {
		if last, err = spread(ctx, client, group); err != nil {
			return err
		}
		if len(last) != members || slices.Min(slices.Collect(maps.Values(last))) == 0 {
			return fmt.Errorf("they are %v", last)
		}
		return nil
	}))
	return last
}

// consume reads a topic as a member of a group, from where the group is to the end of each partition as of now, and
// commits.
func (s *stack) consume(t *testing.T, group, topic string) []*kgo.Record {
	t.Helper()
	client := s.connect(t, kgo.ConsumerGroup(group), kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.DisableAutoCommit())
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	admin := kadm.NewClient(client)
	ends, err := admin.ListEndOffsets(ctx, topic)
	must(t, errors.Join(err, ends.Error()))
	committed, err := admin.FetchOffsets(ctx, group)
	if !errors.Is(err, kerr.GroupIDNotFound) { // it comes for the first time
		must(t, err)
	}
	missing := map[int32]int64{}
	ends.Each(func(o kadm.ListedOffset) {
		at, _ := committed.Lookup(topic, o.Partition)
		if o.Offset > at.At {
			missing[o.Partition] = o.Offset
		}
	})
	var all []*kgo.Record
	for len(missing) > 0 {
		fetched := client.PollFetches(ctx)
		must(t, fetched.Err())
		fetched.EachRecord(func(r *kgo.Record) {
			all = append(all, r)
			if end, more := missing[r.Partition]; more && r.Offset >= end-1 {
				delete(missing, r.Partition)
			}
		})
	}
	must(t, client.CommitRecords(ctx, all...))
	client.Close() // which leaves the group
	return all
}

// header of a record; "" where it has none of the name.
func header(r *kgo.Record, name string) string {
	for _, h := range r.Headers {
		if h.Key == name {
			return string(h.Value)
		}
	}
	return ""
}

// firsts leaves out ticks and what a relay has sent again after a crash.
func firsts(t *testing.T, records []*kgo.Record) []*kgo.Record {
	t.Helper()
	last := map[int32]int64{}
	var kept []*kgo.Record
	for _, r := range records {
		if header(r, events.HeaderType) == events.TickType {
			continue
		}
		sequence, err := strconv.ParseInt(header(r, events.HeaderSequence), 10, 64)
		must(t, err)
		if sequence > last[r.Partition] {
			last[r.Partition] = sequence
			kept = append(kept, r)
		}
	}
	return kept
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
