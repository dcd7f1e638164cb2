//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/feira-shop/feira/api"
	"github.com/feira-shop/feira/internal/shoptest/journeys"
)

// outages are the ways in which Kafka or Postgres goes away.
var outages = []struct {
	name string
	by   func(machine, context.Context) error
}{
	{"Stopped", machine.Stop},
	{"Killed", machine.Kill},
}

// recoverWithin is how long after the return of Kafka or Postgres an order may take to be paid, without anybody's help.
const recoverWithin = 30 * time.Second

// mustRecover places an order and waits until it is paid.
func (s *stack) mustRecover(t *testing.T, what string) {
	t.Helper()
	began, ana := time.Now(), s.shop.Customer(t)
	placed := ana.Place(t, s.shop.Key(), ana.Checkout("CAFE-500G", 1, s.shop.Card("tok_visa")))
	t.Cleanup(func() {
		if t.Failed() {
			var story strings.Builder
			s.shop.Tell(context.Background(), &story, placed.Id)
			t.Logf("the order that was placed after %s was back at %s:\n%s", what, began.UTC().Format(time.StampMilli), &story)
		}
	})
	ana.AwaitMoney(t, placed, api.FinancialStatusPaid)
	took := time.Since(began)
	if t.Logf("an order was paid %s after %s was back", took.Round(time.Millisecond), what); took > recoverWithin {
		t.Errorf("that took longer than %s", recoverWithin)
	}
	must(t, s.shopReady(t.Context()))
}

// TestKafkaAway: while Kafka is away the shop takes orders; when it is back, they go their way.
func TestKafkaAway(t *testing.T) {
	for _, outage := range outages {
		t.Run(outage.name, func(t *testing.T) {
			s, broken := breakable(t, kafkaOn)
			kafka := broken[0]
			tr := trade(t, s, 10)
			tr.await(20)
			must(t, outage.by(kafka, t.Context()))
			tr.await(50) // about 5 s
			must(t, kafka.Start(t.Context()))
			must(t, s.kafkaReady(t.Context()))
			s.mustRecover(t, "Kafka")
			tr.stop()
			journeys.OnKafka(t, s.shop, true)
		})
	}
}

// TestPostgresAway: while Postgres is away nothing is taken; when it is back, customers who tried again have one order
// each.
func TestPostgresAway(t *testing.T) {
	for _, outage := range outages {
		t.Run(outage.name, func(t *testing.T) {
			s, broken := breakable(t, postgresOn)
			postgres := broken[0]
			tr := trade(t, s, 10)
			tr.await(20)
			must(t, outage.by(postgres, t.Context()))
			must(t, await(t.Context(), "customers to notice", func(context.Context) error {
				if n := tr.repeats(); n < 100 {
					return fmt.Errorf("%d checkouts were repeated", n)
				}
				return nil
			}))
			must(t, postgres.Start(t.Context()))
			must(t, s.postgresReady(t.Context()))
			must(t, s.shopReady(t.Context()))
			s.mustRecover(t, "Postgres")
			tr.stop()
			journeys.OnKafka(t, s.shop, true)
		})
	}
}

// TestChaos: in the middle of 50 orders a second, Kafka is killed, then Postgres, then each process of the shop, once
// each, and started again. No order is lost, none is doubled, and all have come to their end within a minute.
func TestChaos(t *testing.T) {
	s, both := breakable(t, kafkaOn, postgresOn)
	kafka, postgres := both[0], both[1]
	tr := trade(t, s, 50)
	tr.await(100)
	must(t, kafka.Kill(t.Context()))
	must(t, kafka.Start(t.Context()))
	must(t, s.kafkaReady(t.Context()))
	tr.await(100)
	must(t, postgres.Kill(t.Context()))
	must(t, postgres.Start(t.Context()))
	must(t, s.postgresReady(t.Context()))
	tr.await(100)
	for _, name := range s.names() {
		must(t, s.parts[name].kill())
		must(t, s.parts[name].start())
		tr.await(75)
	}
	tr.stop()
	s.verify(t) // which waits so long for orders to come to their end, and no longer
	must(t, s.shopReady(t.Context()))
	journeys.OnKafka(t, s.shop, true)
}
