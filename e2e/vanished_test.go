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
	"github.com/feira-shop/feira/shared/faulttest"
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

// fill gives the command that the stopped operator's error names, until its service is well: a slow one may meet the next
// partition only when the command has ended.
func (s *stack) fill(t *testing.T, service string) {
	t.Helper()
	shoptest.Eventually(t, service+" goes on after fill-gap", func(ctx context.Context) error {
		if stops := s.stops(t, service); len(stops) > 0 {
			if _, err := s.feira(ctx, "admin", "fill-gap", stops[0][0], stops[0][1], "all"); err != nil {
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

func TestFaultRecordsDeleted(t *testing.T) {
	faulttest.Begin(t, faulttest.Plan{Number: 8, Name: "Records deleted, on real Kafka", Does: "Records are deleted before loyalty has applied them → " +
		"it stops by name, alone, and the runbook's command gets them from the store of their owner."})
	s := open(t)
	ana, pay := pays(t, s)
	first := pay()
	journeys.Published(t, s.shop)
	must(t, s.parts["loyalty"].stop())
	second := pay()
	journeys.Published(t, s.shop)
	s.forget(t, events.Payments.Name, map[string]string{"orders": "orders.process", "fraud": "fraud.cards", "analytics": "analytics.spend"})
	must(t, s.parts["loyalty"].start())
	s.awaitStop(t, "loyalty", "history_lost")
	s.fill(t, "loyalty")
	third := pay()
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

func TestFaultTopicReplaced(t *testing.T) {
	faulttest.Begin(t, faulttest.Plan{Number: 8, Name: "Topic replaced, on real Kafka", Does: "A topic is deleted and made again under the running shop → " +
		"its readers notice by its id, although name and partitions are the same, and stop; as the runbook says, its owner publishes it anew."})
	s := open(t)
	_, pay := pays(t, s)
	pay()
	journeys.Published(t, s.shop)
	s.remake(t, events.Fraud.Name)
	s.awaitStop(t, "orders", "topic_replaced")
	if _, err := s.feira(t.Context(), "admin", "republish", "fraud", "--yes"); err == nil {
		t.Error("a store is published anew under its running relay")
	}
	s.publishAnew(t, "fraud", "orders.process")
	pay()
	if dropped := s.metric(t, "orders", "feira_operator_duplicates_dropped_total"); dropped == 0 {
		t.Error("orders dropped nothing of what it had applied")
	}
}

// remake deletes a topic and makes it again, under its name, with the partitions that it must have.
func (s *stack) remake(t *testing.T, topic string) {
	t.Helper()
	deleted, err := kadm.NewClient(s.connect(t)).DeleteTopics(t.Context(), topic)
	must(t, errors.Join(err, deleted.Error()))
	must(t, await(t.Context(), "the topic to be made again", func(ctx context.Context) error {
		_, err := s.feira(ctx, "migrate", topic) // fails while the old one is going
		return err
	}))
}

// publishAnew is what the runbook says of a topic that was made again, which here has its owner's name.
func (s *stack) publishAnew(t *testing.T, owner, consumer string) {
	t.Helper()
	must(t, s.parts[owner].stop())
	out, err := s.feira(t.Context(), "admin", "republish", owner, "--dry-run")
	must(t, err)
	if !strings.Contains(out, "nothing was changed") {
		t.Errorf("a dry run says %s", out)
	}
	_, err = s.feira(t.Context(), "admin", "republish", owner, "--yes")
	must(t, err)
	s.back(t, owner)
	_, err = s.feira(t.Context(), "admin", "accept-gap", "--yes", consumer, owner, "all")
	must(t, err)
	service, _, _ := strings.Cut(consumer, ".")
	must(t, s.parts[service].ready(t.Context()))
	for name, action := range map[string]string{owner + ".relay": "republish", consumer: "accept-gap"} {
		out, err := s.feira(t.Context(), "admin", "audit", name)
		must(t, err)
		if !strings.Contains(out, "e2e") || !strings.Contains(out, action) {
			t.Errorf("the audit of %s has no %s by e2e:\n%s", name, action, out)
		}
	}
}
