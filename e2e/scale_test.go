//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/feira-shop/feira/internal/shoptest"
	"github.com/feira-shop/feira/internal/shoptest/journeys"
	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/faulttest"
)

// TestScale: under load, payments goes from one process to three and back. Its partitions spread over all three, and
// the payments of each card stay in order, in one partition.
func TestScale(t *testing.T) {
	s := open(t)
	tr := trade(t, s, 30)
	tr.await(60)
	began := time.Now()
	for i := 2; i <= 3; i++ {
		port, err := freePort(t.Context())
		must(t, err)
		must(t, s.add(fmt.Sprintf("payments-%d", i), "payments", port).start())
	}
	three := s.awaitSpread(t, payGroup, 3)
	t.Logf("three processes have %v after %s", three, time.Since(began).Round(time.Millisecond))
	for name, partitions := range three {
		if partitions != 2 {
			t.Errorf("%s has %d partitions of 6", name, partitions)
		}
	}
	tr.await(150)
	worked := map[string]float64{}
	for name := range map[string]bool{"payments": true, "payments-2": true, "payments-3": true} {
		worked[name] = s.metric(t, name, "feira_operator_events_processed_total")
	}
	if worked["payments-2"] == 0 || worked["payments-3"] == 0 {
		t.Errorf("of the events, the processes applied %v", worked)
	}

	began = time.Now()
	for i := 2; i <= 3; i++ {
		name := fmt.Sprintf("payments-%d", i)
		must(t, s.parts[name].stop())
		delete(s.parts, name)
	}
	one := s.awaitSpread(t, payGroup, 1)
	t.Logf("one process has %v after %s; applied meanwhile: %v", one, time.Since(began).Round(time.Millisecond), worked)
	tr.await(60)
	tr.stop()
	t.Logf("commits that were fenced: %v", s.metric(t, "payments", "feira_operator_commits_fenced_total"))
	journeys.OnKafka(t, s.shop, true)
	s.cardsInOrder(t)
}

// cardsInOrder holds the topic of payments to what is promised of each card: all of it is in one partition, and what
// happened to a payment is in the order in which it happened.
func (s *stack) cardsInOrder(t *testing.T) {
	t.Helper()
	partition, version := map[string]int32{}, map[string]int64{}
	captured := map[string]bool{}
	n := 0
	for _, r := range firsts(t, s.consume(t, cardsGroup, events.Payments.Name)) {
		card, payment := string(r.Key), header(r, events.HeaderSubject)
		if p, known := partition[card]; known && p != r.Partition {
			t.Errorf("the card %s is in the partitions %d and %d", card, p, r.Partition)
		}
		partition[card] = r.Partition
		switch header(r, events.HeaderType) {
		case events.PaymentAuthorized{}.EventType():
			n++
			if captured[payment] {
				t.Errorf("%s was captured before it was authorised", payment)
			}
		case events.PaymentCaptured{}.EventType():
			captured[payment] = true
		}
		version[payment]++
	}
	t.Logf("%d authorisations of %d cards, each card in one partition", n, len(partition))
}

func TestFaultZombieOwner(t *testing.T) {
	run := faulttest.Begin(t, faulttest.Plan{Number: 5, Name: "Zombie owner, on real Kafka", Does: "A process is frozen in the middle of a commit, and another " +
		"takes its partitions over. When it wakes its commit is refused, and what it had in its hands has been done once."})
	for range run.Times(1, 5) {
		frozenOwner(t, run)
	}
}

func frozenOwner(t *testing.T, run *faulttest.Run) {
	s := open(t)
	tr := trade(t, s, 20)
	tr.await(20)
	const fenced = "feira_operator_commits_fenced_total"
	frozen, at, before := s.parts["loyalty"], s.checkpoint(t, "loyalty"), s.metric(t, "loyalty", fenced)
	release := s.holdCheckpoints(t, "loyalty")
	s.awaitBlocked(t, "loyalty", true)
	must(t, frozen.signal(syscall.SIGSTOP))
	run.Count("freezes", 1)
	t.Cleanup(func() { must(t, frozen.signal(syscall.SIGCONT)) }) // before the books are examined
	s.awaitBlocked(t, "loyalty", false)                           // the server gives up what the process waits for
	release()

	port, err := freePort(t.Context())
	must(t, err)
	second := s.add("loyalty-2", "loyalty", port)
	must(t, second.start())
	began := time.Now()
	shoptest.Eventually(t, "the other process goes on", func(context.Context) error {
		if now := s.checkpoint(t, "loyalty"); now < at+50 {
			return fmt.Errorf("the checkpoints went from %d to %d", at, now)
		}
		return nil
	})
	t.Logf("another process went on %s after it was started", time.Since(began).Round(time.Millisecond))

	must(t, frozen.signal(syscall.SIGCONT))
	shoptest.Eventually(t, "the commit of the process that woke up is refused", func(context.Context) error {
		if n := s.metric(t, "loyalty", fenced); n == before {
			return errors.New("it was not")
		}
		return nil
	})
	run.Count("fenced commits", int(s.metric(t, "loyalty", fenced)-before))
	s.awaitSpread(t, loyaltyGroup, 2)
	tr.await(40)
	tr.stop()
	must(t, second.stop())
	delete(s.parts, "loyalty-2")
	s.awaitSpread(t, loyaltyGroup, 1)
}

// holdCheckpoints keeps every checkpoint of a service locked, as somebody with a database console might, until release.
func (s *stack) holdCheckpoints(t *testing.T, service string) (release func()) {
	t.Helper()
	dsn, err := s.dsn(service)
	must(t, err)
	conn, err := pgx.Connect(t.Context(), dsn)
	must(t, err)
	_, err = conn.Exec(t.Context(), "begin; select from checkpoints for update")
	must(t, err)
	return func() { must(t, conn.Close(t.Context())) }
}

// awaitBlocked waits until the server has a statement of a service that waits for a lock, or has none.
func (s *stack) awaitBlocked(t *testing.T, service string, blocked bool) {
	t.Helper()
	shoptest.Eventually(t, fmt.Sprintf("a statement of %s waits for a lock: %v", service, blocked), func(ctx context.Context) error {
		var n int
		err := s.shop.Pool(service).QueryRow(ctx, "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'").Scan(&n)
		if err == nil && (n > 0) != blocked {
			err = fmt.Errorf("%d do", n)
		}
		return err
	})
}
