package stream

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/feira-shop/feira/shared/eventstore"
	"github.com/feira-shop/feira/shared/operator"
)

func (b *bed) watermarks() string {
	b.t.Helper()
	rows, err := b.db.Pool.Query(context.Background(), "select max_time from stream_watermarks order by partition")
	if err != nil {
		b.t.Fatal(err)
	}
	defer rows.Close()
	var all []string
	for rows.Next() {
		var micros int64
		if err := rows.Scan(&micros); err != nil {
			b.t.Fatal(err)
		}
		all = append(all, time.UnixMicro(micros).UTC().Format(time.TimeOnly))
	}
	return fmt.Sprint(all)
}

// The state is as large as the last seconds, in memory and in the database, and the ticks of an idle topic free the
// rest. What comes after a tick and is older is late.
func TestTicksMoveAnIdleWatermarkAndFreeTheState(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	for i := range 600 { // two minutes, a click every 200 ms, each of a key of its own
		at := epoch.Add(time.Duration(i) * 200 * time.Millisecond)
		p := int32(i) % clicks.Partitions
		b.publish(p, b.click(p, fmt.Sprintf("%d-%d", p, i), at, at))
	}
	b.run(definition("tests.judge"), "m1")
	b.await("600 verdicts", func() bool { return b.verdicts() == 600 })
	b.await("the state to be shown", func() bool { return b.metric("feira_operator_events_processed_total") == 600 })
	// 5 s of the window, 10 s of disorder, 1 s of a bucket, and at 5 clicks a second.
	if keys := b.metric("feira_stream_state_keys"); keys == 0 || keys > 5*(5+10+2) {
		t.Errorf("%v keys are kept, at most those of the last 17 s matter", keys)
	}
	if rows := b.count("select count(*) from stream_deltas where expires_at < $1", epoch.Add(119*time.Second-disorder).UnixMicro()); rows != 0 {
		t.Errorf("%d delta rows are behind the watermark", rows)
	}
	if rows := b.count("select count(*) from stream_deltas"); rows == 0 {
		t.Error("no deltas were saved")
	}
	b.ticks(epoch.Add(time.Hour))
	b.await("the watermark", func() bool { return b.watermarks() == "[13:00:00 13:00:00 13:00:00]" })
	b.await("an empty state", func() bool { return b.metric("feira_stream_state_keys") == 0 })
	if rows := b.count("select count(*) from stream_deltas"); rows != 0 {
		t.Errorf("%d delta rows are left", rows)
	}
	at := epoch.Add(time.Hour - disorder - time.Microsecond)
	late := b.click(0, "0-1", at, at)
	onTime := b.click(1, "1-1", at.Add(time.Microsecond), at.Add(time.Microsecond))
	b.publish(0, late)
	b.publish(1, onTime)
	b.await("602 verdicts", func() bool { return b.verdicts() == 602 })
	for id, want := range map[string]string{late.ID: "late", onTime.ID: ""} {
		if n := b.count("select count(*) from events where data ->> 'id' = $1 and data ->> 'verdict' = $2", id, want); n != 1 {
			t.Errorf("the verdict on %s is not %q", id, want)
		}
	}
	b.await("the counter", func() bool { return b.metric("feira_stream_late_events_total") == 1 })
	if size := b.count("select coalesce(max(length(entries::text)), 0) from stream_deltas"); size == 0 {
		t.Error("the last batch saved nothing")
	}
}

// One click of tomorrow, then ten good ones: ten are judged, one is in quarantine, and the watermark stays with the
// ten. It leaves no state behind either, which would be kept until tomorrow.
func TestTheFutureIsQuarantined(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	tomorrow := b.click(0, "0-1", epoch, epoch.Add(24*time.Hour))
	b.publish(0, tomorrow)
	for i := range 10 {
		at := epoch.Add(time.Duration(i) * time.Minute)
		b.publish(0, b.click(0, "0-1", at, at.Add(time.Minute))) // a minute of skew is allowed
	}
	b.run(definition("tests.judge"), "m1")
	b.await("11 verdicts", func() bool { return b.verdicts() == 11 })
	if n := b.count("select count(*) from events where data ->> 'verdict' = ''"); n != 10 {
		t.Errorf("%d of 10 good clicks were judged", n)
	}
	if got := b.watermarks(); got != "[12:10:00]" {
		t.Errorf("the highest time is %s", got)
	}
	if n := b.count("select count(*) from stream_deltas where expires_at > $1", epoch.Add(time.Hour).UnixMicro()); n != 0 {
		t.Errorf("%d delta rows wait for tomorrow", n)
	}
	b.await("the counter", func() bool { return b.metric("feira_stream_quarantined_events_total") == 1 })
}

// A parked click that is replayed when the watermark has gone on is late, gets its verdict, and moves nothing back.
func TestAReplayDoesNotMoveTheWatermarkBack(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	bad := b.click(0, "0-bad", epoch, epoch)
	b.publish(0, bad)
	for i := range 30 {
		at := epoch.Add(time.Duration(i) * time.Second)
		b.publish(0, b.click(0, "0-good", at, at))
	}
	def := definition("tests.judge")
	inner := def.Handler
	refuse := make(chan bool, 1)
	refuse <- true
	def.Handler = func(s *eventstore.Store) operator.Handler {
		return &refusing{Stateful: inner(s).(operator.Stateful), id: bad.ID, refuse: refuse}
	}
	b.run(def, "m1")
	b.await("30 verdicts", func() bool { return b.verdicts() == 30 })
	before := b.watermarks()
	<-refuse
	refuse <- false
	ids, err := operator.Replay(t.Context(), b.db.Pool, operator.Selection{Operator: def.Name}, "ana")
	if err != nil || len(ids) != 1 {
		t.Fatalf("%v, %v", ids, err)
	}
	b.await("31 verdicts", func() bool { return b.verdicts() == 31 })
	if n := b.count("select count(*) from events where data ->> 'id' = $1 and data ->> 'verdict' = 'late'", bad.ID); n != 1 {
		t.Error("the replayed click is not late")
	}
	if after := b.watermarks(); after != before || after != "[12:00:29]" {
		t.Errorf("the highest time was %s and is %s", before, after)
	}
	b.check30()
}

// check30: what came after the replay is judged as if nothing had happened.
func (b *bed) check30() {
	b.t.Helper()
	at := epoch.Add(31 * time.Second)
	next := b.click(0, "0-good", at, at)
	b.publish(0, next)
	b.await("32 verdicts", func() bool { return b.verdicts() == 32 })
	if n := b.count("select count(*) from events where data ->> 'id' = $1 and length(data ->> 'verdict') = 36", next.ID); n != 1 {
		b.t.Error("the next click of a busy key is no repeat")
	}
}

// The watermark outlives a restart: what was late before is late afterwards, also when it is the first to come.
func TestTheWatermarkOutlivesARestart(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.publish(0, b.click(0, "0-1", epoch.Add(time.Hour), epoch.Add(time.Hour)))
	stop := b.run(definition("tests.judge"), "m1")
	b.await("a verdict", func() bool { return b.verdicts() == 1 })
	saved := b.count("select sum(octet_length(entries::text)) from stream_deltas")
	b.await("the size of the checkpoint", func() bool { return b.metric("feira_operator_checkpoint_bytes") == float64(saved) })
	stop()
	late := b.click(0, "0-2", epoch.Add(time.Hour), epoch.Add(time.Hour-disorder-time.Microsecond))
	b.publish(0, late)
	b.run(definition("tests.judge"), "m1")
	b.await("two verdicts", func() bool { return b.verdicts() == 2 })
	if n := b.count("select count(*) from events where data ->> 'id' = $1 and data ->> 'verdict' = 'late'", late.ID); n != 1 {
		t.Error("it is not late any more")
	}
}

// refusing rejects one event for as long as it is told to.
type refusing struct {
	operator.Stateful
	id     string
	refuse chan bool
}

func (r *refusing) Apply(ctx context.Context, tx *eventstore.Tx, batch []operator.Record) error {
	refuse := <-r.refuse
	r.refuse <- refuse
	for _, rec := range batch {
		if refuse && rec.ID == r.id {
			return operator.Reject(errors.New("not acceptable"))
		}
	}
	return r.Stateful.Apply(ctx, tx, batch)
}
