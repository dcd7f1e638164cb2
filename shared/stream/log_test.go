package stream

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/operator"
)

// profile is a state that is needed for ninety days.
type profile struct {
	N    int       `json:"n"`
	Last time.Time `json:"last"`
}

func profiles() Rule[profile] {
	return Rule[profile]{
		Apply: func(p profile, r events.Recorded, _ bool) (profile, []events.Event) {
			return profile{p.N + 1, r.Time}, nil
		},
		Until: func(p profile) time.Time { return p.Last.Add(90 * 24 * time.Hour) },
	}
}

var onePart = shardKey{topic: clicks.Name}

func keyed() Source { return From(clicks).KeyBy(func(r events.Recorded) string { return r.Key }) }

func visit(key string, at time.Time) operator.Record {
	return operator.Record{Topic: clicks.Name, Recorded: events.Recorded{Key: key, Meta: events.Meta{ID: "visit", Time: at}}}
}

// A million writes to few states that live for months: the log stays as small as the states are, whether a batch writes
// one of them or many, and although some are written once and never again. What a batch carries forward is bounded.
func TestTheLogIsAsLargeAsTheState(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ writes, batch, busy, idle int }{
		{1_000_000, 500, 2000, 0},
		{300_000, 500, 50, 3000},
		{50_000, 1, 20, 300},
		{100_000, 7, 1000, 1000},
	} {
		t.Run(fmt.Sprintf("%+v", c), func(t *testing.T) {
			t.Parallel()
			d := disk{}
			p := restore(t, d, keyed(), profiles(), onePart)
			s := p.shards[onePart]
			random := rand.New(rand.NewPCG(1, 2))
			at := epoch
			var batch []operator.Record
			most, carried := 0.0, 0
			for i := range c.writes {
				at = at.Add(100 * time.Millisecond)
				key := fmt.Sprintf("idle-%d", i)
				if i >= c.idle {
					key = fmt.Sprintf("busy-%d", random.IntN(c.busy))
				}
				if batch = append(batch, visit(key, at)); len(batch) < c.batch {
					continue
				}
				_, all := p.try(t, batch)
				if n := len(p.pending[onePart].carried); n > max(leastCarried, len(batch)) {
					t.Fatalf("a batch of %d carries %d states forward", len(batch), n)
				}
				carried += len(p.pending[onePart].carried)
				d.save(all)
				p.Settle(true)
				batch = batch[:0]
				if i > c.writes/10 {
					most = max(most, float64(s.log.bytes)/float64(s.log.needed))
				}
			}
			s.audit(t)
			state := 0
			for _, text := range p.states(t, onePart) {
				state += len(text)
			}
			t.Logf("%d keys, %d bytes of state, %d in %d rows of the log, at most %.1f times the state; %.2f carried per write",
				s.keys.len(), state, d.size(onePart), len(d[onePart].rows), most, float64(carried)/float64(c.writes))
			if size := d.size(onePart); size > 4*state {
				t.Errorf("the log has %d bytes for %d of state", size, state)
			}
			if most > 4 {
				t.Errorf("the log was %.1f times as large as the state", most)
			}
			if carried > 2*c.writes {
				t.Errorf("%d states were carried forward for %d writes", carried, c.writes)
			}
			if again := restore(t, d, keyed(), profiles(), onePart); !sameText(again.states(t, onePart), p.states(t, onePart)) {
				t.Error("another state is restored")
			} else {
				again.shards[onePart].audit(t)
			}
		})
	}
}

// A key that is gone stays gone: the row that says so is not taken away before the row with its state.
func TestAKeyThatIsGoneDoesNotComeBack(t *testing.T) {
	t.Parallel()
	rule := profiles()
	rule.Until = func(p profile) time.Time {
		if p.N%3 == 0 {
			return time.Time{} // at every third visit it is forgotten
		}
		return p.Last.Add(time.Hour)
	}
	d := disk{}
	p := restore(t, d, keyed(), rule, onePart)
	random := rand.New(rand.NewPCG(3, 4))
	for i := range 20_000 {
		p.commit(t, d, []operator.Record{visit(fmt.Sprint(random.IntN(50)), epoch.Add(time.Duration(i)*time.Second))})
		if i%97 == 0 {
			again := restore(t, d, keyed(), rule, onePart)
			if have, want := again.states(t, onePart), p.states(t, onePart); !sameText(have, want) {
				t.Fatalf("after %d visits %v is restored, want %v", i, have, want)
			}
			p = again
		}
	}
	p.shards[onePart].audit(t)
}
