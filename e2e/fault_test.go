//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/feira-shop/feira/internal/shoptest/journeys"
	"github.com/feira-shop/feira/shared/faulttest"
)

func TestFaultRebalance(t *testing.T) {
	run := faulttest.Begin(t, faulttest.Plan{Number: 6, Name: "Rebalance churn, on real Kafka", Does: "Under load, a process of payments joins or leaves " +
		"every 2 s, half of them killed → no order is lost or doubled, each card's payments stay in order."})
	s := open(t)
	tr := trade(t, s, 20)
	tr.await(20)
	dice := run.Dice()
	member := 0
	for end := time.Now().Add(run.For(12*time.Second, 3*time.Minute)); time.Now().Before(end); {
		member++
		port, err := freePort(t.Context())
		must(t, err)
		joined := s.add(fmt.Sprintf("payments-churn-%d", member), "payments", port)
		must(t, joined.start())
		run.Count("joins", 1)
		pause(t, 2*time.Second)
		if dice.IntN(2) == 0 {
			must(t, joined.kill())
			run.Count("kills", 1)
		} else {
			must(t, joined.stop())
			run.Count("leaves", 1)
		}
		delete(s.parts, joined.name)
		pause(t, 2*time.Second)
	}
	began := time.Now()
	s.awaitSpread(t, payGroup, 1)
	tr.await(40)
	run.Found("settled after", time.Since(began).Round(100*time.Millisecond).String())
	tr.stop()
	run.Count("orders", tr.count())
	journeys.OnKafka(t, s.shop, true)
	s.cardsInOrder(t)
}

func TestFaultBroker(t *testing.T) {
	run := faulttest.Begin(t, faulttest.Plan{Number: 8, Name: "Broker faults, on real Kafka", Does: "Under load, every connection to Kafka is cut, again and again, " +
		"then Kafka is stopped for a while, again and again → the shop goes on by itself within 30 s, and no event is lost or doubled."})
	s, broken := breakable(t, kafkaOn)
	tr := trade(t, s, 10)
	tr.await(20)
	if s.network == nil {
		s.notRun = append(s.notRun, t.Name()+" (cuts)")
	} else {
		for range run.Times(5, 50) {
			s.network.Cut()
			run.Count("cuts", 1)
			pause(t, time.Duration(500+run.Dice().IntN(1000))*time.Millisecond)
		}
		s.mustRecover(t, "the network")
	}
	away := run.For(6*time.Second, time.Minute)
	for range run.Times(1, 5) {
		must(t, broken[0].Stop(t.Context()))
		pause(t, away)
		must(t, broken[0].Start(t.Context()))
		must(t, s.kafkaReady(t.Context()))
		run.Count("stops of "+away.String(), 1)
		s.mustRecover(t, "Kafka")
	}
	tr.stop()
	run.Count("orders", tr.count())
	journeys.OnKafka(t, s.shop, true)
}

// pause lets the fault last, or the shop trade on, for so long.
func pause(t *testing.T, d time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	<-ctx.Done()
	must(t, t.Context().Err())
}
