package stream

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/operator"
)

// byCloudEventsTime are windows whose events have no other time.
func byCloudEventsTime() operator.Definition {
	def := From(clicks, clicked{}).KeysBy(initials).Disorder(disorder).Window(tens).Aggregate(windowsName, totalOf(windowsName))
	def.MaxBatch = 25
	return def
}

// other publishes an event of a type that is not wanted.
func (b *bed) other(partition int32, typ string, recorded, at time.Time) {
	b.t.Helper()
	b.seq++
	b.publish(partition, events.Recorded{
		Meta: events.Meta{ID: uuid.NewString(), Time: at}, Type: typ, Source: clicks.Source(), Subject: "other", Key: "k",
		Sequence: b.seq, Previous: b.last[partition], HasPrevious: true, RecordedAt: recorded, Data: []byte("{}"),
	})
	b.last[partition] = b.seq
}

// Payments that are all refused, say: a partition never idles, so that no relay ticks it, and nothing that is wanted
// happens there. Windows close nevertheless, by the time of what does happen; whether this release knows the type or not.
func TestWindowsCloseByEventsOfOtherTypes(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	stop := b.run(byCloudEventsTime(), "m1")
	types := []string{"", judged{}.EventType(), "shop.feira.click.invented.v1"}
	others := func(from, n int) {
		for i := range n {
			at := epoch.Add(time.Duration(from+i) * time.Second)
			for p := int32(1); p < clicks.Partitions; p++ {
				b.other(p, types[p], at, at)
			}
		}
	}
	b.steady(0, 60, 0)
	others(0, 43) // the watermark is at 32 s
	closed := func(seconds int) bool {
		return b.count("select coalesce(max(closed_until), 0) from stream_windows") == int(epoch.Add(time.Duration(seconds)*time.Second).UnixMicro())
	}
	b.await("the windows of 30 s", func() bool { return closed(30) })
	if n := b.count("select count(*) from events"); n != 2*3 {
		t.Errorf("%d results", n)
	}
	// Nothing can have happened after it was recorded.
	b.other(1, types[1], epoch.Add(44*time.Second), epoch.Add(time.Hour))
	b.other(2, types[2], epoch.Add(44*time.Second), epoch.Add(time.Hour))
	// What is passed over is not forgotten at a restart.
	others(45, 8) // the watermark is at 42 s
	stop()
	b.run(byCloudEventsTime(), "m2")
	b.await("the windows of 40 s", func() bool { return closed(40) })
	// By the same time an event is late.
	b.publish(1, b.click(1, "c", epoch.Add(20*time.Second), epoch.Add(20*time.Second)))
	b.publish(1, b.click(1, "c", epoch.Add(41*time.Second), epoch.Add(41*time.Second)))
	b.await("62 clicks", func() bool { return b.received() == 62 })
	if n := b.count("select count(*) from stream_late"); n != 1 {
		t.Errorf("%d clicks are late, want the first", n)
	}
	if done := b.rebuild(byCloudEventsTime(), true); differences(done) != 0 {
		t.Errorf("made anew: %+v", done)
	}
}

// An event that has no key, or that only another topic of the operator wants, tells the time as well; where events have a
// time of their own, none does.
func TestWhatDoesNotCountTellsTheTime(t *testing.T) {
	t.Parallel()
	own := clicksIn(0)
	plain := From(clicks, clicked{}).KeysBy(initials)
	strange := clicks
	strange.Owner = ""
	unkeyed := events.Recorded{Meta: events.Meta{Time: epoch}, Type: clicked{}.EventType(), RecordedAt: epoch.Add(time.Minute), Event: clicked{At: epoch}}
	unwanted := unkeyed
	unwanted.Type, unwanted.Key, unwanted.Event = judged{}.EventType(), "k", judged{}
	for _, tt := range []struct {
		name string
		from Source
		r    events.Recorded
		want int64
	}{
		{"no key", plain, unkeyed, epoch.UnixMicro()},
		{"another type", plain, unwanted, epoch.UnixMicro()},
		{"a time of its own", own, unkeyed, noWatermark},
		{"a time of its own, another type", own, unwanted, noWatermark},
		{"strangers", From(strange, clicked{}).KeysBy(initials), unkeyed, noWatermark},
	} {
		w := newWindower("tests", Sources{tt.from}, tens, totalOf("tests"))
		h, p := newHarvest[made](), shardKey{clicks.Name, 0}
		w.watermarks[p] = noWatermark
		if err := w.take(h, operator.Record{Topic: clicks.Name, Recorded: tt.r}); err != nil {
			t.Fatal(err)
		}
		got, met := h.watermarks[p]
		if !met {
			got = noWatermark
		}
		if got != tt.want || len(h.partials) > 0 || h.ledger.total(counted) > 0 {
			t.Errorf("%s: the watermark is %d, want %d; %s", tt.name, got, tt.want, fmt.Sprint(h.partials))
		}
	}
	if windowed().Clock[clicks.Name] || !byCloudEventsTime().Clock[clicks.Name] {
		t.Error("operators ask for the time of other events when it is theirs, and only then")
	}
}
