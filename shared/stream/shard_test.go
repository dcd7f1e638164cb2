package stream

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/operator"
)

// seen is a state of one time, in seconds since 1970.
type seen struct{ At int64 }

func keepFor(ttl int64) Rule[seen] {
	return Rule[seen]{
		Apply: func(_ seen, r events.Recorded, _ bool) (seen, []events.Event) { return seen{r.Time.Unix()}, nil },
		Until: func(s seen) time.Time { return time.Unix(s.At+ttl, 0) },
	}
}

func at(sec int64) *operator.Record {
	return &operator.Record{Recorded: events.Recorded{Meta: events.Meta{Time: time.Unix(sec, 0)}}}
}

// settle merges what a batch changed, as a commit does.
func (p *processor[S]) settle(o *overlay[S]) {
	watermark := p.watermark(o.maxTime)
	o.merge(watermark)
	o.base.free(watermark, mostLooks, p.tidy)
}

func processorOf(ttl int64, disorder time.Duration) *processor[seen] {
	return newProcessor("test", From(events.Payments).Disorder(disorder), keepFor(ttl))
}

func TestMemoryIsBoundedByWhatIsNeeded(t *testing.T) {
	t.Parallel()
	p := processorOf(5, 10*time.Second)
	s := newShard[seen]()
	for i := range int64(100_000) {
		o := over(s)
		p.judge(o, fmt.Sprint(i), at(1_000_000+i/100)) // 100 keys a second
		p.settle(o)
		if n := s.keys.len(); n > 100*(5+10+2) {
			t.Fatalf("%d keys are kept after %d events; at most the last 17 s matter", n, i)
		}
	}
	if len(s.buckets) > 20 {
		t.Fatalf("%d buckets are kept", len(s.buckets))
	}
}

// bag is a state with a large part that is needed for five seconds, and a small one for a thousand.
type bag struct {
	At     int64
	Things []int64
}

// A key that nothing is heard of keeps in memory what is still needed of its state, and no more.
func TestAnIdleStateIsTrimmed(t *testing.T) {
	t.Parallel()
	p := newProcessor("test", From(events.Payments), Rule[bag]{
		Apply: func(b bag, r events.Recorded, _ bool) (bag, []events.Event) {
			return bag{r.Time.Unix(), append(slices.Clone(b.Things), r.Time.Unix())}, nil
		},
		Until: func(b bag) time.Time { return time.Unix(b.At+1000, 0) },
		Trim: func(b bag, watermark time.Time) bag {
			b.Things = slices.DeleteFunc(slices.Clone(b.Things), func(at int64) bool { return at+5 < watermark.Unix() })
			return b
		},
		TrimAt: func(b bag) time.Time {
			if len(b.Things) == 0 {
				return time.Time{}
			}
			return time.Unix(slices.Max(b.Things)+5, 0)
		},
	})
	s := newShard[bag]()
	hear := func(key string, sec int64) {
		o := over(s)
		p.judge(o, key, at(sec))
		watermark := p.watermark(o.maxTime)
		o.merge(watermark)
		o.base.free(watermark, mostLooks, p.tidy)
	}
	idle := func() bool { _, kept := s.keys.find("idle"); return kept }
	things := func() int { return len(over(s).get("idle").state.Things) }
	for _, begin := range []int64{1000, 1300} { // it comes back
		hear("idle", begin)
		hear("idle", begin+3)
		if things() != 2 {
			t.Fatalf("%d things are kept while they are needed, want 2", things())
		}
		for sec := begin + 4; sec < begin+12; sec++ {
			hear("busy", sec)
		}
		if !idle() || things() != 0 {
			t.Errorf("%d things of an idle key are in memory, its state itself: %v", things(), idle())
		}
	}
	hear("busy", 2400)
	if idle() {
		t.Error("a key that is not needed is in memory")
	}
}

func TestADiscardedBatchChangesNothing(t *testing.T) {
	t.Parallel()
	p := processorOf(5, 0)
	s := newShard[seen]()
	first := over(s)
	p.judge(first, "a", at(100))
	p.settle(first)
	lost := over(s)
	p.judge(lost, "a", at(103))
	p.judge(lost, "b", at(104))
	if got := over(s).get("a").state.At; got != 100 || s.keys.len() != 1 || s.maxTime != at(100).Time.UnixMicro() {
		t.Fatalf("a batch that was rolled back left a=%d, %d keys, time %d", got, s.keys.len(), s.maxTime)
	}
}

// The deltas of a batch share one text; each is of its own partition alone, also when the text has grown.
func TestEachPartitionHasItsOwnDelta(t *testing.T) {
	t.Parallel()
	p := processorOf(5, 0)
	for partition := range int32(3) {
		p.shards[shardKey{events.Payments.Name, partition}] = newShard[seen]()
	}
	for round := 1; round <= 3; round++ {
		batch := make([]operator.Record, 30*round)
		for i := range batch {
			r := *at(100)
			r.Topic, r.Partition, r.Key = events.Payments.Name, int32(i%3), fmt.Sprintf("%d-%d%s", i%3, i, strings.Repeat("x", 500*round))
			batch[i] = r
		}
		_, all := p.try(t, batch)
		if len(all) != 3 {
			t.Fatalf("%d checkpoints of three partitions", len(all))
		}
		said := 0
		for _, c := range all {
			said += len(c.delta)
			var list []saved[seen]
			if err := json.Unmarshal(c.delta, &list); err != nil || len(list) != 10*round {
				t.Fatalf("%d states of partition %d, %v, want %d", len(list), c.partition, err, 10*round)
			}
			for _, e := range list {
				if !strings.HasPrefix(e.Key, fmt.Sprint(c.partition, "-")) {
					t.Errorf("%.10s is in the delta of partition %d", e.Key, c.partition)
				}
			}
		}
		if len(p.text) != said {
			t.Errorf("the text has %d bytes, the deltas of the batch %d", len(p.text), said)
		}
		p.Settle(true)
	}
}

func TestLateIsJudgedByTheWatermark(t *testing.T) {
	t.Parallel()
	var late []bool
	p := processorOf(5, 10*time.Second)
	p.rule.Apply = func(s seen, _ events.Recorded, l bool) (seen, []events.Event) {
		late = append(late, l)
		return s, nil
	}
	o := over(newShard[seen]())
	for _, sec := range []int64{100, 90, 89, 110, 99} {
		p.judge(o, "a", at(sec))
	}
	if want := []bool{false, false, true, false, true}; fmt.Sprint(late) != fmt.Sprint(want) {
		t.Fatalf("late %v, want %v", late, want)
	}
}

// A delta row must not be freed while an older row that it overrides is still there.
func TestExpiryOfDeltasNeverFalls(t *testing.T) {
	t.Parallel()
	p := processorOf(5, time.Hour)
	s := newShard[seen]()
	var last int64
	for _, sec := range []int64{100, 500, 20, 300} {
		o := over(s)
		p.judge(o, "a", at(sec))
		if o.expires < last {
			t.Fatalf("expiry fell from %d to %d", last, o.expires)
		}
		last = o.expires
		p.settle(o)
	}
}

func TestTheWatermarksDelayIsThatOfTheSlowestPartition(t *testing.T) {
	t.Parallel()
	p := processorOf(5, 10*time.Second)
	p.now = func() time.Time { return time.Unix(1000, 0) }
	delay := func() float64 {
		reg := prometheus.NewPedanticRegistry()
		reg.MustRegister(p)
		families, err := reg.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range families {
			if f.GetName() == "feira_stream_watermark_delay_seconds" {
				return f.GetMetric()[0].GetGauge().GetValue()
			}
		}
		return -1
	}
	if got := delay(); got != 0 {
		t.Errorf("without partitions it is %v", got)
	}
	for partition, sec := range map[int32]int64{0: 900, 1: 950, 2: 0} { // nothing was ever seen on 2
		s := newShard[seen]()
		p.shards[shardKey{"payments", partition}] = s
		if sec > 0 {
			o := over(s)
			p.judge(o, "a", at(sec))
			p.settle(o)
		}
	}
	p.show()
	if got := delay(); got != 110 {
		t.Errorf("it is %v s, want 110", got)
	}
	p.Release(operator.Claim{Topic: "payments", Partition: 0})
	if got := delay(); got != 60 {
		t.Errorf("without the slowest it is %v s, want 60", got)
	}
}
