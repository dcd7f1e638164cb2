package operator

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/IBM/sarama"
)

// All that a stop waits for has one deadline: a second try does not get the time anew.
func TestAttemptsShareTheTimeThatAStopLeaves(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLoop(&run{op: &Operator{timing: defaultTiming}})
		ctx, stop := context.WithCancel(t.Context())
		defer l.outlive(ctx)()
		first, end := l.attemptContext(ctx)
		defer end()
		stop()
		begun := time.Now()
		time.Sleep(defaultTiming.giveUp / 2) // of the test's own clock
		if first.Err() != nil {
			t.Error("the transaction in hand had no time left")
		}
		second, end := l.attemptContext(ctx)
		defer end()
		<-first.Done()
		<-second.Done()
		if took := time.Since(begun); took != defaultTiming.giveUp {
			t.Errorf("the stop waits %s, want %s", took, defaultTiming.giveUp)
		}
		third, end := l.attemptContext(ctx)
		defer end()
		synctest.Wait()
		if third.Err() == nil {
			t.Error("a late try goes on")
		}
	})
}

// bystander is a session that lives as long as its context.
type bystander struct {
	sarama.ConsumerGroupSession
	ctx context.Context //nolint:containedctx // as sarama's sessions have one
}

func (b bystander) Context() context.Context { return b.ctx }

// The age is that of records: a batch without any, as one that ends at a hole, has none; the second half of a batch
// has its own.
func TestAgeIsThatOfTheRecordsInHand(t *testing.T) {
	t.Parallel()
	newPart := func() *part {
		return &part{claim: &claim{session: bystander{ctx: t.Context()}, queue: newQueue(10, 1000), ended: make(chan struct{})}}
	}
	l := newLoop(&run{op: &Operator{timing: defaultTiming}})
	p := newPart()
	l.began(batch{p})
	if age := p.claim.age(); age != 0 {
		t.Errorf("no record is %s old", age)
	}
	p.claim.queue.offer([]*item{{}}) // without a time
	if age := p.claim.age(); age != 0 {
		t.Errorf("a record without a time is %s old", age)
	}
	p.steps = []step{{item: &item{raw: raw{timestamp: time.Now().Add(-time.Hour)}}}}
	l.began(batch{p})
	if age := p.claim.age(); age < time.Hour {
		t.Errorf("age %s, want an hour", age)
	}
}

// A partition that was lost and claimed again is handed over whole: what is to be released never comes after the
// claim whose state took its place.
func TestLostClaimsAreHandedOverWithTheirSuccessors(t *testing.T) {
	t.Parallel()
	cs := newClaims()
	newClaim := func() *claim {
		return &claim{place: place{"facts", 0}, session: bystander{ctx: t.Context()}, ended: make(chan struct{})}
	}
	before, after := newClaim(), newClaim()
	cs.add([]*claim{before})
	if lost, alive := cs.handOver(); len(lost) != 0 || len(alive) != 1 || alive[0] != before {
		t.Errorf("lost %v, alive %v", lost, alive)
	}
	cs.drop("facts")
	cs.add([]*claim{after})
	if lost, alive := cs.handOver(); len(lost) != 1 || lost[0] != before || len(alive) != 1 || alive[0] != after {
		t.Errorf("lost %v, alive %v", lost, alive)
	}
	if lost, _ := cs.handOver(); len(lost) != 0 {
		t.Error("handed over twice")
	}
}
