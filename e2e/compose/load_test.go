//go:build e2e

package compose

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/IBM/sarama"

	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/kafka"
)

// In the middle of the trade the main process of each container is killed from outside, and its restart policy starts
// it again. No order is lost or doubled, and all settle.
func TestMainProcessesAreKilledInTheMiddleOfTheTrade(t *testing.T) {
	before := taken(t)
	trade := newCrowd(t)
	trade.busy(t, 2*perSecond)
	for _, service := range services() {
		took := shop.killed(t, service)
		t.Logf("%-9s runs again after %s; %d orders so far", service, took.Round(100*time.Millisecond), trade.orders())
		trade.busy(t, perSecond)
	}
	shop.awaitHealthy(t, services()...)
	trade.settle(t, before)
}

// Under load payments grows to three replicas, which share the partitions, and shrinks to one.
func TestPaymentsIsScaledInTheMiddleOfTheTrade(t *testing.T) {
	before := taken(t)
	trade := newCrowd(t)
	trade.busy(t, perSecond)
	for _, replicas := range []int{3, 1} {
		shop.must(t, "up", "--wait", "--scale", "payments="+strconv.Itoa(replicas))
		eventually(t, fmt.Sprintf("%d replicas share the partitions", replicas), func() (bool, string) {
			shares, err := shares(t.Context(), "payments.pay.orders")
			even := err == nil && len(shares) == replicas
			for _, partitions := range shares {
				even = even && partitions == int(events.Orders.Partitions)/replicas
			}
			return even, fmt.Sprint(shares, err)
		})
		t.Logf("payments has %d replicas with the same share; %d orders so far", replicas, trade.orders())
		trade.busy(t, 3*perSecond)
	}
	trade.settle(t, before)
	if n := inOrder(t, events.Payments); n == 0 {
		t.Error("there are no events of payments")
	}
}

// The gateway finds the replicas that there are, also at addresses that it did not know: one is added, then the first
// is taken away with its address.
func TestTheGatewayFollowsReplicas(t *testing.T) {
	before, err := shop.containers(t.Context(), "orders")
	if err != nil || len(before) != 1 {
		t.Fatalf("%d containers of orders, %v", len(before), err)
	}
	shop.must(t, "up", "--wait", "--scale", "orders=2")
	trade := newCrowd(t)
	trade.busy(t, perSecond)
	if _, err := shop.docker(t.Context(), "rm", "--force", strings.TrimPrefix(before[0].Name, "/")); err != nil {
		t.Fatal(err)
	}
	trade.busy(t, 2*perSecond)
	shop.must(t, "up", "--wait", "--scale", "orders=1")
	trade.busy(t, 2*perSecond)
	trade.stop()
	trade.odd.Stop()
	<-trade.done
	if err := <-trade.ended; err != nil || trade.summary.Failed > 0 {
		t.Errorf("%v, %d checkouts were never taken", err, trade.summary.Failed)
	}
}

// The profile load places orders all the time.
func TestTheProfileLoadTrades(t *testing.T) {
	before := taken(t)
	shop.must(t, "--profile", "load", "up", "--detach", "load")
	eventually(t, "orders are placed", func() (bool, string) {
		now := taken(t)
		return now >= before+10, fmt.Sprint(now)
	})
	shop.must(t, "--profile", "load", "rm", "--force", "--stop", "load")
}

// shares says how many partitions each member of a consumer group has.
func shares(ctx context.Context, group string) (map[string]int, error) {
	client, err := kafka.NewClient(kafka.Config{Brokers: []string{shop.kafka}, ClientID: "compose-test"})
	if err != nil {
		return nil, err
	}
	defer client.Close()
	admin, err := sarama.NewClusterAdminFromClient(client)
	if err != nil {
		return nil, err
	}
	groups, err := admin.DescribeConsumerGroups([]string{group})
	if err != nil {
		return nil, err
	}
	has := map[string]int{}
	for id, m := range groups[0].Members {
		assignment, err := m.GetMemberAssignment()
		if err != nil {
			return nil, err
		}
		if assignment != nil {
			for _, partitions := range assignment.Topics {
				has[id] += len(partitions)
			}
		}
	}
	return has, ctx.Err()
}

// inOrder reads a topic and checks that in each partition, and so for each card, events came first in the order in
// which they happened. It gives how many records there are.
func inOrder(t *testing.T, topic events.Topic) (records int) {
	t.Helper()
	client, err := kafka.NewClient(kafka.Config{Brokers: []string{shop.kafka}, ClientID: "compose-test"})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	for partition := range topic.Partitions {
		reader, err := kafka.OpenReader(client, topic.Name, partition, 0)
		if err != nil {
			t.Fatal(err)
		}
		seen, last := map[int64]bool{}, int64(0)
		for {
			batch, err := reader.Next(t.Context(), 1000)
			if err != nil {
				t.Fatal(err)
			}
			if len(batch) == 0 {
				break
			}
			for _, m := range batch {
				position, previous, ok := place(m)
				if !ok || seen[position] { // a tick, or a repetition after a crash
					continue
				}
				if previous != last || position <= last {
					t.Fatalf("%s/%d: event %d follows %d, and says that it follows %d", topic.Name, partition, position, last, previous)
				}
				seen[position], last = true, position
				records++
			}
		}
		if err := reader.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return records
}

// place reads an event's position in its store, and that of the one before it in the partition.
func place(m *sarama.ConsumerMessage) (position, previous int64, ok bool) {
	for _, h := range m.Headers {
		switch n, err := strconv.ParseInt(string(h.Value), 10, 64); string(h.Key) {
		case "ce_sequence":
			position, ok = n, err == nil
		case "ce_previous":
			previous = n
		}
	}
	return position, previous, ok
}
