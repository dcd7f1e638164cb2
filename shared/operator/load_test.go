package operator

import (
	"context"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// load publishes facts, as a relay does, until it is stopped: a broker that is away is waited for.
type load struct {
	w      *world
	dice   *rand.Rand
	cancel context.CancelFunc
	done   sync.WaitGroup
	sent   atomic.Int64
	log    []*kgo.Record // of the goroutine until done
}

// Facts of a load come in rounds. Each partition has three keys at a time, and each key some ten facts, so that one
// whose event is parked does not collect all that follow.
const (
	factsOfARound = 12
	keysAtATime   = 3
	factsOfAKey   = 10
)

// load begins. Nobody else may publish in this world until it has stopped.
func (w *world) load(dice *rand.Rand, every time.Duration) *load {
	ctx, cancel := context.WithCancel(context.Background())
	l := &load{w: w, dice: dice, cancel: cancel}
	l.done.Go(func() {
		tick := time.NewTicker(every)
		defer tick.Stop()
		for ctx.Err() == nil {
			l.round()
			select {
			case <-tick.C:
			case <-ctx.Done():
			}
		}
	})
	w.t.Cleanup(l.end)
	return l
}

// round publishes for as long as it takes, also after a stop: what was made has its place in the chain.
func (l *load) round() {
	generation := len(l.log) / (factsOfAKey * keysAtATime * int(facts.Partitions))
	copies := make([]*kgo.Record, factsOfARound) // the client writes to them
	for i := range copies {
		partition := i % int(facts.Partitions)
		lane := partition + int(facts.Partitions)*l.dice.IntN(keysAtATime)
		r := l.w.fact(facts, int32(partition), "key-"+strconv.Itoa(lane)+"-"+strconv.Itoa(generation))
		l.log = append(l.log, r)
		c := *r
		copies[i] = &c
	}
	limit, cancel := context.WithTimeout(context.Background(), 3*patience)
	defer cancel()
	if err := l.w.client.ProduceSync(limit, copies...).FirstErr(); err != nil {
		l.w.t.Errorf("publish: %v", err)
	}
	l.sent.Add(factsOfARound)
}

func (l *load) end() {
	l.cancel()
	l.done.Wait()
}

// stop gives all that was published, in the order of the partitions.
func (l *load) stop() []*kgo.Record {
	l.end()
	return l.log
}

// await waits until so many facts more were published.
func (l *load) await(n int) {
	l.w.t.Helper()
	want := l.sent.Load() + int64(n)
	l.w.await("more facts published", func() bool { return l.sent.Load() >= want })
}
