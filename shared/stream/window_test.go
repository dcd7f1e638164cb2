package stream

import (
	"fmt"
	"testing"
	"time"

	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/eventstore"
	"github.com/feira-shop/feira/shared/operator"
)

// The windows of these tests: ten seconds, and two more for what is late.
var tens = Tumbling(10 * time.Second).Lateness(2 * time.Second)

const windowsName = "tests.windows"

func windowed() operator.Definition {
	def := clicksIn(disorder).Window(tens).Aggregate(windowsName, totalOf(windowsName))
	def.MaxBatch = 25
	return def
}

// records are the log as a naive computation takes it.
func (b *bed) records() map[int32][]operator.Record {
	all := map[int32][]operator.Record{}
	for p, log := range b.log {
		for _, r := range log {
			all[p] = append(all[p], operator.Record{Recorded: r, Topic: clicks.Name, Partition: p})
		}
	}
	return all
}

// closed waits until every window has closed, and demands what the naive computation says.
func (b *bed) closed() {
	b.t.Helper()
	want := naive(windowsName, clicksIn(disorder), tens, b.records())
	b.await(fmt.Sprintf("%d results", len(want.results)), func() bool { return len(said(b.t, b.db, windowsName)) >= len(want.results) })
	got := said(b.t, b.db, windowsName)
	for name, w := range want.results {
		if g := got[name]; (made{g.Count, g.Sum}) != w || g.Revision != 1 {
			b.t.Errorf("%s is %+v, want %+v", name, g, w)
		}
	}
	if n := b.count("select count(*) from events"); n != len(want.results) {
		b.t.Errorf("%d events for %d results", n, len(want.results))
	}
}

func (b *bed) received() int {
	return b.count("select coalesce(sum(received), 0) from stream_watermarks")
}

// steady publishes a click every second on some partitions, from a second on.
func (b *bed) steady(from, n int, partitions ...int32) {
	b.t.Helper()
	for i := range n {
		at := epoch.Add(time.Duration(from+i) * time.Second)
		for _, p := range partitions {
			b.publish(p, b.click(p, "ab", at, at))
		}
	}
}

// Traffic is on one partition of three. Its windows close when the ticks of the others allow it, and not before; the
// last one of the day, with no event behind it, closes by ticks alone.
func TestWindowsCloseByTheTicksOfIdlePartitions(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.run(windowed(), "m1")
	b.steady(0, 60, 0)
	b.await("60 clicks", func() bool { return b.received() == 60 })
	if n := b.count("select count(*) from events"); n != 0 {
		t.Fatalf("%d results, although two partitions have said nothing", n)
	}
	b.ticks(epoch.Add(disorder + 32*time.Second)) // the watermark is at 32 s: windows until 30 s may close
	b.await("the windows of 30 s", func() bool { return b.count("select count(*) from events") == 2*3 })
	b.await("the watermarks", func() bool { return b.count("select count(*) from stream_watermarks where watermark > 0") == 3 })
	if until := b.count("select closed_until from stream_windows"); until != int(epoch.Add(30*time.Second).UnixMicro()) {
		t.Errorf("closed until %s", time.UnixMicro(int64(until)).UTC())
	}
	b.ticks(epoch.Add(time.Hour))
	b.closed()
	b.await("the partial values to be gone", func() bool { return b.count("select count(*) from stream_partials") == 0 })
}

// Seven events come too late for their window: seven rows, and a count of seven. One comes from tomorrow: it is put
// aside and moves nothing. None is dropped in silence.
func TestLateAndQuarantinedEventsAreKept(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.steady(0, 60, 0, 1, 2)
	now := epoch.Add(time.Minute)
	b.publish(1, b.click(1, "a", now, now.Add(24*time.Hour)))
	for i := range 7 {
		b.publish(int32(i%3), b.click(int32(i%3), "abc", now, epoch.Add(time.Duration(i)*time.Second)))
	}
	b.steady(60, 10, 0, 1, 2)
	b.ticks(epoch.Add(time.Hour))
	b.run(windowed(), "m1")
	b.closed()
	for what, want := range map[string]int{"late": 7, "quarantined": 1} {
		if n := b.count("select count(*) from stream_late where reason = $1", what); n != want {
			t.Errorf("%d rows of %s events, want %d", n, what, want)
		}
		if n := b.count("select sum(" + what + ") from stream_watermarks"); n != want {
			t.Errorf("%d %s events were counted, want %d", n, what, want)
		}
		if n := b.metric("feira_stream_" + what + "_events_total"); int(n) != want {
			t.Errorf("the metric of %s events is %v, want %d", what, n, want)
		}
	}
	if n := b.received(); n != 3*70+8 || n != b.count("select sum(counted + late + quarantined) from stream_watermarks") {
		t.Errorf("%d events were received, want %d", n, 3*70+8)
	}
	if n := b.count("select count(*) from stream_late where reason = 'late' and key = 'a,b,c' and event_time < watermark and recorded_at is not null"); n != 7 {
		t.Errorf("%d of 7 late rows say what they must", n)
	}
}

// A relay is down for two minutes and then sends what it has. The other partitions have gone on meanwhile; nothing of the
// backlog is late, since only its own partition's watermark counts, and no window has closed without it.
func TestABacklogIsNotLate(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.run(windowed(), "m1")
	b.steady(0, 30, 0, 1, 2)
	b.steady(30, 150, 0, 1)
	b.await("all but the backlog", func() bool { return b.received() == 3*30+2*150 })
	b.steady(30, 150, 2)
	b.ticks(epoch.Add(time.Hour))
	b.closed()
	if n := b.count("select count(*) from stream_late"); n != 0 {
		t.Errorf("%d events of the backlog are late", n)
	}
}

// Two processes own the partitions, and both pass the end of every window. Each is said once.
func TestTwoProcessesCloseEachWindowOnce(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	stop := b.run(windowed(), "m1")
	b.steady(0, 30, 0, 1, 2)
	b.await("the first to own all partitions", func() bool { return b.received() == 3*30 })
	b.runQuietly(windowed(), "m2")
	b.await("both to own partitions", func() bool { return b.count("select coalesce(max(epoch), 0) from checkpoints") >= 2 })
	b.steady(30, 100, 0, 1, 2)
	b.await("the clicks", func() bool { return b.received() == 3*130 })
	stop() // whoever had partition 0, the other one has it then
	b.steady(130, 20, 0, 1, 2)
	b.ticks(epoch.Add(time.Hour))
	b.closed()
	if n := b.count("select count(*) from streams where version > 1"); n != 0 {
		t.Errorf("%d results were said twice", n)
	}
}

// A window has closed and the process is gone. What comes for it afterwards is late, and it is not said again.
func TestAClosedWindowStaysClosedAcrossARestart(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.steady(0, 40, 0, 1, 2)
	stop := b.run(windowed(), "m1")
	b.await("the first windows", func() bool { return b.count("select count(*) from events") >= 2*2 })
	stop()
	before := b.count("select count(*) from events")
	for p := range clicks.Partitions {
		b.publish(p, b.click(p, "ab", epoch.Add(40*time.Second), epoch.Add(time.Second)))
	}
	b.ticks(epoch.Add(41 * time.Second))
	b.run(windowed(), "m1")
	b.await("the late clicks", func() bool { return b.count("select count(*) from stream_late where reason = 'late'") == 3 })
	b.ticks(epoch.Add(time.Hour))
	b.closed()
	if b.count("select count(*) from events") <= before {
		t.Error("nothing has closed since")
	}
}

// What an operator said of closed windows, and what it has of open ones, is made anew from the log: what was damaged is
// put right, a wrong result by its next revision, and the read model follows.
func TestFaultRebuildOfWindows(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	total := totalOf(windowsName)
	total.Keep = func(tx *eventstore.Tx, closed []Result[made]) error {
		for _, r := range closed {
			tx.Later("insert into kept values ($1, $2) on conflict (stream) do update set revision = excluded.revision", total.Stream(r), r.Revision)
		}
		return nil
	}
	def := clicksIn(disorder).Window(tens).Aggregate(windowsName, total)
	b.exec("create table kept (stream text primary key, revision int not null)")
	b.history(600)
	b.run(def, "m1")
	b.await("all clicks", func() bool { return b.received() == 600 })
	b.await("windows to be closed", func() bool { return b.count("select count(*) from kept") > 20 })
	b.await("the last one", func() bool {
		return b.count(`select count(*) from stream_windows w where closed_until + $1 + $2 >
			(select min(watermark) from stream_watermarks)`, tens.size.Microseconds(), tens.lateness.Microseconds()) == 1
	})
	if done := b.rebuild(def, false); differences(done) != 0 || done.Outputs.Missing+done.Outputs.Different != 0 || done.Outputs.Rows < 20 {
		t.Fatalf("rebuilt what is right: %+v, %+v", done, done.Outputs)
	}
	want := said(t, b.db, windowsName)
	b.exec(`update events set data = jsonb_set(data::jsonb, '{n}', '999')::json where position in (select position from events order by position limit 2)`)
	b.exec(`delete from stream_partials where id in (select id from stream_partials limit 1)`)
	b.exec(`update stream_watermarks set counted = counted - 1, received = received - 1 where partition = 1`)
	b.exec(`update stream_closings set keys = '["nobody"]' where id = (select min(id) from stream_closings)`)
	if done := b.rebuild(def, true); differences(done) < 2 || done.Outputs.Different != 2 || done.Switched || b.count("select max(version) from streams") != 1 {
		t.Errorf("a dry run: %+v, %+v", done, done.Outputs)
	}
	if done := b.rebuild(def, false); differences(done) < 2 || done.Outputs.Different != 2 || done.Outputs.Missing != 1 || !done.Switched {
		t.Errorf("rebuilt: %+v, %+v", done, done.Outputs)
	}
	if n := b.count("select count(*) from kept where revision = 2"); n != 2 || b.count("select count(*) from streams where version = 2") != 2 {
		t.Errorf("%d results are kept in their second revision, want 2", n)
	}
	for name, g := range said(t, b.db, windowsName) {
		if was, known := want[name]; known && (g.Count != was.Count || g.Sum != was.Sum) || !known && g.Count != 0 {
			t.Errorf("%s is %+v after the revision, was %+v", name, g, was)
		}
	}
	if done := b.rebuild(def, true); differences(done) != 0 || done.Outputs.Different+done.Outputs.Missing != 0 {
		t.Errorf("after the revisions: %+v, %+v", done, done.Outputs)
	}
	b.ticks(epoch.Add(time.Hour))
	b.await("every window to be closed", func() bool { return b.count("select count(*) from stream_partials") == 0 })
	naively := naive(windowsName, clicksIn(disorder), tens, b.records())
	for name, w := range naively.results {
		if g := said(t, b.db, windowsName)[name]; (made{g.Count, g.Sum}) != w {
			t.Errorf("%s is %+v, want %+v", name, g, w)
		}
	}
}

func (b *bed) exec(sql string) {
	b.t.Helper()
	if _, err := b.db.Pool.Exec(b.t.Context(), sql); err != nil {
		b.t.Fatalf("%s: %v", sql, err)
	}
}

// Open windows can be read while they fill, of one key or of all.
func TestOpenWindowsCanBeRead(t *testing.T) {
	t.Parallel()
	f := newField(t)
	f.begin("open", clicksIn(0), Sliding(20*time.Second, 10*time.Second), []int32{0, 1})
	for i := range 60 {
		at := epoch.Add(time.Duration(i) * time.Second)
		f.click(0, "a", at, at)
		f.click(1, "ab", at, at)
	}
	f.batch(f.hands[0], 60, true)
	f.hands[0].Settle(true)
	for f.close(f.hands[0], 1000, true) > 0 { // windows that end until 50 s
		f.hands[0].Closed(true)
	}
	read := func(key string, from, to int) []Result[made] {
		t.Helper()
		all, err := OpenWindows(t.Context(), f.db.Pool, f.name, f.w, totalOf(f.name), Span{
			Key: key, From: epoch.Add(time.Duration(from) * time.Second), To: epoch.Add(time.Duration(to) * time.Second),
		})
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	var got string
	for _, r := range read("", 0, 3600) {
		got += fmt.Sprintf("%s %s-%s %d; ", r.Key, r.Window.Start.Format("05"), r.Window.End.Format("05"), r.Value.Count)
	}
	if want := "a 40-00 40; b 40-00 20; a 50-10 20; b 50-10 10; "; got != want {
		t.Errorf("open are %s want %s", got, want)
	}
	if one := read("b", 0, 3600); len(one) != 2 || one[0].Value.Count != 20 || one[0].Revision != 0 {
		t.Errorf("of b alone: %+v", one)
	}
	if early, late := read("b", 0, 40), read("b", 60, 70); len(early) != 0 || len(late) != 1 {
		t.Errorf("%d before 40 s, %d from 60 s on", len(early), len(late))
	}
}

// Two topics as one input, each with its keys and its bound.
func TestWindowsOverTwoTopics(t *testing.T) {
	t.Parallel()
	orders := events.Topic{Name: "others", Owner: "others", Partitions: 1}
	both := clicksIn(time.Second).And(From(orders).KeyBy(func(r events.Recorded) string { return "o" + r.Key }))
	def := both.Window(tens).Aggregate("both", totalOf("both"))
	if len(def.Topics) != 2 || def.Topics[0].Name != clicks.Name || def.Types != nil {
		t.Errorf("it reads %v of %v", def.Types, def.Topics)
	}
	w := newWindower("both", both, tens, totalOf("both"))
	h := newHarvest[made]()
	for _, topic := range []string{clicks.Name, orders.Name} {
		w.watermarks[shardKey{topic, 0}] = noWatermark
		r := operator.Record{Topic: topic, Recorded: events.Recorded{Meta: events.Meta{Time: epoch}, Key: "k", Event: clicked{At: epoch}}}
		if err := w.take(h, r); err != nil {
			t.Fatal(err)
		}
	}
	if h.partials[paneOf{shardKey{clicks.Name, 0}, epoch.UnixMicro()}]["k"].Count != 1 || h.partials[paneOf{shardKey{orders.Name, 0}, epoch.UnixMicro()}]["ok"].Count != 1 {
		t.Errorf("%+v", h.partials)
	}
	if a, b := h.watermarks[shardKey{clicks.Name, 0}], h.watermarks[shardKey{orders.Name, 0}]; b-a != time.Second.Microseconds() {
		t.Errorf("watermarks are %d and %d", a, b)
	}
}
