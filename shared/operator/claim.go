package operator

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/IBM/sarama"
)

// place names a partition.
type place struct {
	topic     string
	partition int32
}

func (p place) compare(q place) int {
	return cmp.Or(cmp.Compare(p.topic, q.topic), cmp.Compare(p.partition, q.partition))
}

// claim is a partition for as long as one session owns it. Everything that is known about the partition lives
// here and dies with it, so nothing of an older session can leak into a newer one.
type claim struct {
	place
	session sarama.ConsumerGroupSession
	start   int64 // offset at which the session was told to begin
	queue   *queue
	ended   chan struct{}
	endOnce sync.Once
	high    atomic.Pointer[func() int64] // end offset of the partition, as far as known
	inHand  atomic.Int64                 // time of the oldest record in the batch in hand, in Unix nanoseconds; 0: none
	parked  atomic.Int64                 // records parked in the partition
	done    atomic.Int64                 // saved.next, for the metrics
	quiet   atomic.Pointer[quiet]        // set when nothing came for a while

	// Of the loop alone.
	owned    Claim          // as the handler knows it
	epoch    int64          // of the checkpoint row
	saved    position       // what the checkpoint row says
	at       position       // what was taken; ahead of saved by records without effect
	clock    time.Time      // how far those say that time has come
	blocked  map[string]int // parked records by key
	restored bool
	retryAt  time.Time // not before: a restore failed
}

// part is the beginning of one of the next batch: where the claim is, and what was told on the way there.
func (c *claim) part() *part {
	p := &part{claim: c, to: c.at}
	if !c.clock.IsZero() {
		p.steps = append(p.steps, step{item: &item{clock: c.clock}, fate: filtered, to: c.at})
	}
	return p
}

// readingFrom says where the end of the partition can be asked for.
func (c *claim) readingFrom(gc sarama.ConsumerGroupClaim) {
	high := gc.HighWaterMarkOffset
	c.high.Store(&high)
}

// end makes the session that owns the claim end, so that its records are read again by whoever owns them next.
func (c *claim) end() { c.endOnce.Do(func() { close(c.ended) }) }

func (c *claim) dead() bool {
	select {
	case <-c.ended:
		return true
	case <-c.session.Context().Done():
		return true
	default:
		return false
	}
}

// mark tells Kafka what the database has, for the tools that show lag.
func (c *claim) mark() {
	c.done.Store(c.saved.next)
	c.session.MarkOffset(c.topic, c.partition, c.saved.next, "")
}

// lag is how many records the partition has beyond the checkpoint, as far as known.
func (c *claim) lag() int64 {
	high := c.high.Load()
	if high == nil {
		return 0
	}
	return max(0, (*high)()-c.done.Load())
}

// age is that of the oldest record that was read and is not committed.
func (c *claim) age() time.Duration {
	at := time.Unix(0, c.inHand.Load())
	if at.Unix() == 0 {
		var waiting bool
		if at, waiting = c.queue.head(); !waiting || at.IsZero() {
			return 0
		}
	}
	return max(0, time.Since(at))
}

// claims are those of this process. Sessions add and drop them, the loop works on them.
type claims struct {
	mu      sync.Mutex
	byPlace map[place]*claim
	lost    []*claim // dropped, not yet released by the loop
}

func newClaims() *claims { return &claims{byPlace: map[place]*claim{}} }

func (cs *claims) add(news []*claim) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	for _, c := range news {
		cs.byPlace[c.place] = c
	}
}

// drop ends every claim of a topic.
func (cs *claims) drop(topic string) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	for p, c := range cs.byPlace {
		if p.topic == topic {
			c.end()
			delete(cs.byPlace, p)
			cs.lost = append(cs.lost, c)
		}
	}
}

func (cs *claims) get(p place) *claim {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	return cs.byPlace[p]
}

// sorted lists the claims that are alive, in the order of the locks on their rows.
func (cs *claims) sorted() []*claim {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	return cs.alive()
}

// alive is sorted, for those that hold the lock.
func (cs *claims) alive() []*claim {
	alive := make([]*claim, 0, len(cs.byPlace))
	for _, c := range cs.byPlace {
		if !c.dead() {
			alive = append(alive, c)
		}
	}
	slices.SortFunc(alive, func(a, b *claim) int { return a.compare(b.place) })
	return alive
}

// handOver gives the claims whose state can be released, and those that are alive as of the same moment: a partition
// that is lost and claimed again in between would have its new state released in the place of the old one.
func (cs *claims) handOver() (lost, alive []*claim) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	lost, cs.lost = cs.lost, nil
	return lost, cs.alive()
}

// parkedOne and resolvedOne keep count of the parked records, by whose keys others are blocked.
func (c *claim) parkedOne(order string) {
	c.parked.Add(1)
	if order != "" {
		c.blocked[order]++
	}
}

func (c *claim) resolvedOne(order string) {
	c.parked.Add(-1)
	if order == "" {
		return
	}
	if c.blocked[order]--; c.blocked[order] <= 0 {
		delete(c.blocked, order)
	}
}
