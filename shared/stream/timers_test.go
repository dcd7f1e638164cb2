package stream

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/operator"
)

// quiet says of a key that nothing came for a while: once for each silence.
type quiet struct {
	Last time.Time `json:"last"`
	Said bool      `json:"said"`
}

func silence(after time.Duration) Rule[quiet] {
	return Rule[quiet]{
		Apply: func(q quiet, r events.Recorded, _ bool) (quiet, []events.Event) {
			return quiet{Last: r.Event.(clicked).At}, nil
		},
		Until: func(q quiet) time.Time { return q.Last },
		Timer: func(q quiet) time.Time {
			if q.Said {
				return time.Time{}
			}
			return q.Last.Add(after)
		},
		Fire: func(q quiet, at time.Time) (quiet, []events.Event) {
			q.Said = true
			return q, events.List(judged{ID: fmt.Sprint(at.Unix()), Verdict: q.Last.UTC().Format(time.TimeOnly)})
		},
		Stream: func(e events.Event) string { return "quiet-" + e.(judged).ID },
	}
}

// Timers fire by the ticks of an idle topic, in the transaction that moves the watermark, and what is left of the state
// then is free; a restart in between loses none, and fires none twice.
func TestTicksFireTimersAcrossARestart(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	from := From(clicks, clicked{}).Disorder(disorder).At(func(r events.Recorded) time.Time { return r.Event.(clicked).At })
	def := from.Process("tests.quiet", silence(time.Minute))
	for i := range 10 {
		at := epoch.Add(time.Duration(i) * time.Second)
		b.publish(0, b.click(0, fmt.Sprintf("0-%d", i), at, at))
	}
	stop := b.run(def, "m1")
	b.await("the clicks", func() bool { return b.count("select coalesce(sum(received), 0) from stream_watermarks") == 10 })
	if n := b.verdicts(); n != 0 {
		t.Errorf("%d timers have fired already", n)
	}
	stop()
	b.ticks(epoch.Add(time.Minute + disorder + 4*time.Second))
	stop = b.run(def, "m1")
	b.await("five timers", func() bool { return b.verdicts() == 5 })
	stop()
	b.ticks(epoch.Add(time.Hour))
	b.run(def, "m1")
	b.await("ten timers", func() bool { return b.verdicts() == 10 })
	b.await("an empty state", func() bool { return b.metric("feira_stream_state_keys") == 0 })
	for i := range 10 {
		at := epoch.Add(time.Duration(i) * time.Second)
		if n := b.count("select count(*) from events where data ->> 'id' = $1 and data ->> 'verdict' = $2",
			fmt.Sprint(at.Add(time.Minute).Unix()), at.Format(time.TimeOnly)); n != 1 {
			t.Errorf("the timer of %s has fired %d times", at.Format(time.TimeOnly), n)
		}
	}
	if n := b.count("select count(*) from stream_deltas"); n != 0 {
		t.Errorf("%d delta rows are left", n)
	}
}

// A rule that leaves a state due at once would hang the operator.
func TestATimerThatIsNotLaterIsRefused(t *testing.T) {
	t.Parallel()
	rule := sessions()
	rule.Fire = func(s session, _ time.Time) (session, []events.Event) { return s, nil }
	p := restore(t, disk{}, keyed(), rule, onePart)
	batch := []operator.Record{visit("a", epoch), visit("b", epoch.Add(time.Minute))}
	err := p.hear(batch, func(events.Recorded, events.Event) error { return nil })
	var same *timerNotLaterError
	if !errors.As(err, &same) || same.key != "a" {
		t.Fatalf("got %v, want a refusal", err)
	}
}

// Timers that are put off again and again do not pile up.
func TestTimersThatWerePutOffAreForgotten(t *testing.T) {
	t.Parallel()
	rule, d := sessions(), disk{}
	rule.Timer = func(s session) time.Time { return sec(s.Last, 3600) }
	p := restore(t, d, keyed(), rule, onePart)
	for i := range 20_000 {
		p.commit(t, d, []operator.Record{visit(fmt.Sprint(i%10), epoch.Add(time.Duration(i)*100*time.Millisecond))})
	}
	if n := len(p.shards[onePart].timers); n > 2*10+64+1 {
		t.Errorf("%d timers are kept for 10 keys", n)
	}
}
