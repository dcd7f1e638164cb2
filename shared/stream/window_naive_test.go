package stream

import (
	"slices"
	"time"

	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/operator"
)

// made is what windows of these tests hold: how many, and how much.
type made struct {
	Count int `json:"n"`
	Sum   int `json:"sum"`
}

func (m made) add(o made) made { return made{m.Count + o.Count, m.Sum + o.Sum} }

// windowClosed is what is said of one.
type windowClosed struct {
	Key      string    `json:"key"`
	Start    time.Time `json:"start"`
	End      time.Time `json:"end"`
	Count    int       `json:"n"`
	Sum      int       `json:"sum"`
	Revision int       `json:"revision"`
}

func (windowClosed) EventType() string  { return "shop.feira.window.closed.v1" }
func (w windowClosed) EventKey() string { return w.Key }

// worth is what a click adds: something that follows from it and nothing else.
func worth(c clicked) int { return int(c.At.UnixMilli() % 97) }

func totalOf(prefix string) Aggregation[made] {
	return Aggregation[made]{
		Lift:  func(r events.Recorded, _ string) made { return made{1, worth(r.Event.(clicked))} },
		Merge: made.add,
		Event: func(r Result[made]) events.Event {
			return windowClosed{r.Key, r.Window.Start, r.Window.End, r.Value.Count, r.Value.Sum, r.Revision}
		},
		Stream: func(r Result[made]) string { return streamOf(prefix, r.Key, r.Window) },
	}
}

func streamOf(prefix, key string, w Window) string {
	return prefix + "-" + w.Start.Format(time.RFC3339) + "-" + key
}

// initials are the keys of a click: each of its letters.
func initials(r events.Recorded) []string {
	var keys []string
	for _, l := range r.Key {
		keys = append(keys, string(l))
	}
	return keys
}

func clicksIn(d time.Duration) Source {
	return From(clicks, clicked{}).KeysBy(initials).
		At(func(r events.Recorded) time.Time { return r.Event.(clicked).At }).Disorder(d)
}

// expected is what a naive computation that sorts and adds makes of a log: by stream.
type expected struct {
	results            map[string]made
	counts             map[fate]int
	late               map[string]fate // by event
	lowest             time.Time       // of all watermarks
	partitionsReported int
}

// naive computes what must be there: it walks each partition with its own watermark, then gives each event that counts
// to every window around it.
func naive(prefix string, from Source, w Windows, log map[int32][]operator.Record) expected {
	want := expected{results: map[string]made{}, counts: map[fate]int{}, late: map[string]fate{}}
	var kept []operator.Record
	for _, records := range log {
		highest := time.Time{}
		for _, r := range records {
			if r.Type == events.TickType {
				highest = latest(highest, r.Time)
				continue
			}
			if r.Key == "" { // it counts nowhere, and tells the time
				if !from.other {
					highest = latest(highest, r.Clock())
				}
				continue
			}
			at := r.Event.(clicked).At
			firstEnd := at.Truncate(w.slide).Add(w.slide)
			switch {
			case at.Sub(r.RecordedAt) > from.skew:
				want.late[r.ID] = quarantined
			case !highest.IsZero() && !firstEnd.Add(w.lateness).After(highest.Add(-from.disorder)):
				want.late[r.ID] = late
			default:
				kept = append(kept, r)
				want.counts[counted]++
				highest = latest(highest, at)
			}
			if f := want.late[r.ID]; f != "" {
				want.counts[f]++
			}
		}
		if mark := highest.Add(-from.disorder); want.partitionsReported == 0 || mark.Before(want.lowest) {
			want.lowest = mark
		}
		want.partitionsReported++
	}
	slices.SortFunc(kept, func(a, b operator.Record) int { return a.Event.(clicked).At.Compare(b.Event.(clicked).At) })
	for _, r := range kept {
		c := r.Event.(clicked)
		for start := c.At.Truncate(w.slide).Add(w.slide - w.size); !start.After(c.At); start = start.Add(w.slide) {
			for _, key := range named(initials(r.Recorded)) {
				name := streamOf(prefix, key, Window{Start: start})
				want.results[name] = want.results[name].add(made{1, worth(c)})
			}
		}
	}
	return want
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
