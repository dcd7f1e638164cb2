//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/feira-shop/feira/api"
	"github.com/feira-shop/feira/internal/shoptest"
	"github.com/feira-shop/feira/internal/shoptest/journeys"
	"github.com/feira-shop/feira/shared/events"
)

// pays has a customer pay for one order after the other on one card, which is one partition; each order is of another
// amount, or it would be held as a duplicate.
func pays(t *testing.T, s *stack) (ana *shoptest.Customer, pay func() api.Order) {
	t.Helper()
	ana, card, n := s.shop.Customer(t), s.shop.Card("tok_visa"), int64(0)
	return ana, func() api.Order {
		t.Helper()
		n++
		return ana.AwaitMoney(t, ana.Buy(t, "CAFE-500G", n, card), api.FinancialStatusPaid)
	}
}

// stops lists why operators of a service stopped, as operator, topic, partition and kind.
func (s *stack) stops(t *testing.T, service string) (all [][4]string) {
	t.Helper()
	rows, err := s.shop.Pool(service).Query(t.Context(), "select operator, topic, partition::text, kind from operator_stops order by partition")
	must(t, err)
	var stop [4]string
	_, err = pgx.ForEachRow(rows, []any{&stop[0], &stop[1], &stop[2], &stop[3]}, func() error {
		all = append(all, stop)
		return nil
	})
	must(t, err)
	return all
}

// awaitStop waits until an operator of a service has stopped with a reason, and so says that it is not ready.
func (s *stack) awaitStop(t *testing.T, service, kind string) {
	t.Helper()
	shoptest.Eventually(t, service+" stops by name: "+kind, func(ctx context.Context) error {
		for _, stop := range s.stops(t, service) {
			if stop[3] == kind {
				status, _, err := s.parts[service].get(ctx, "/readyz")
				if err == nil && status != http.StatusServiceUnavailable {
					err = fmt.Errorf("its readiness is %d", status)
				}
				return err
			}
		}
		return errors.New("it has not")
	})
	out, err := s.feira(t.Context(), "admin", "operators")
	must(t, err)
	if !strings.Contains(out, "stopped: ") {
		t.Errorf("feira admin operators does not say so:\n%s", out)
	}
}

// mend gives a command for whatever a service has stopped for, until it is well: it meets one partition after the other.
func (s *stack) mend(t *testing.T, service, command string, args ...string) {
	t.Helper()
	shoptest.Eventually(t, service+" goes on after "+command, func(ctx context.Context) error {
		for _, stop := range s.stops(t, service) {
			if _, err := s.feira(ctx, append([]string{"admin", command, stop[0], stop[1], stop[2]}, args...)...); err != nil {
				t.Fatal(err)
			}
		}
		status, body, err := s.parts[service].get(ctx, "/readyz")
		if err == nil && status != http.StatusOK {
			err = errors.New(body)
		}
		return err
	})
}

// The tests of this file come last: what they do to Kafka stays, and other tests compare all of it with the stores.

// TestRecordsDeleted: records are deleted from Kafka before loyalty has applied them. It stops by name, alone, and gets
// them from the store of their owner.
func TestRecordsDeleted(t *testing.T) {
	s := open(t)
	ana, pay := pays(t, s)
	first := pay()
	journeys.Published(t, s.shop)
	must(t, s.parts["loyalty"].stop())
	second := pay()
	journeys.Published(t, s.shop)
	s.forget(t, events.Payments.Name, map[string]string{"orders": "orders.process", "fraud": "fraud.duplicates"})
	must(t, s.parts["loyalty"].start())
	s.awaitStop(t, "loyalty", "history_lost")
	s.mend(t, "loyalty", "fill-gap")
	third := pay() // shows how much is missing
	s.awaitStop(t, "loyalty", "missing_events")
	s.mend(t, "loyalty", "fill-gap")
	var points int64
	for _, o := range []api.Order{first, second, third} {
		points += o.Total.Amount / 100
	}
	ana.AwaitPoints(t, points)
}

// forget deletes every record of a topic that these operators, by their service, have applied.
func (s *stack) forget(t *testing.T, topic string, operators map[string]string) {
	t.Helper()
	admin := kadm.NewClient(s.connect(t))
	ends, err := admin.ListEndOffsets(t.Context(), topic)
	must(t, errors.Join(err, ends.Error()))
	for service, operator := range operators {
		ends.Each(func(o kadm.ListedOffset) {
			shoptest.Eventually(t, operator+" has applied "+topic, func(ctx context.Context) error {
				var next int64
				err := s.shop.Pool(service).QueryRow(ctx, "select next_offset from checkpoints where operator = $1 and topic = $2 and partition = $3",
					operator, topic, o.Partition).Scan(&next)
				if err == nil && next < o.Offset {
					err = fmt.Errorf("it is at %d of %d", next, o.Offset)
				}
				return err
			})
		})
	}
	deleted, err := admin.DeleteRecords(t.Context(), ends.Offsets())
	must(t, errors.Join(err, deleted.Error()))
}

// TestTopicReplaced: a topic is deleted and made again under the running shop. Its readers notice by its id, although
// its name and its partitions are the same, and stop; as the runbook says, its owner publishes everything anew.
func TestTopicReplaced(t *testing.T) {
	s := open(t)
	_, pay := pays(t, s)
	pay()
	journeys.Published(t, s.shop)
	admin := kadm.NewClient(s.connect(t))
	deleted, err := admin.DeleteTopics(t.Context(), events.Fraud.Name)
	must(t, errors.Join(err, deleted.Error()))
	must(t, await(t.Context(), "the topic to be made again", func(ctx context.Context) error {
		_, err := s.feira(ctx, "migrate", "fraud") // fails while the old one is going
		return err
	}))
	s.awaitStop(t, "orders", "topic_replaced")

	must(t, s.parts["fraud"].stop())
	for _, sql := range []string{"update relay_cursor set position = 0, partitions = 0", "delete from relay_partitions"} {
		_, err := s.shop.Pool("fraud").Exec(t.Context(), sql)
		must(t, err)
	}
	s.back(t, "fraud")
	_, err = s.feira(t.Context(), "admin", "accept-gap", "--yes", "orders.process", events.Fraud.Name, "all")
	must(t, err)
	must(t, s.parts["orders"].ready(t.Context()))
	pay()
	if dropped := s.metric(t, "orders", "feira_operator_duplicates_dropped_total"); dropped == 0 {
		t.Error("orders dropped nothing of what it had applied")
	}
}
