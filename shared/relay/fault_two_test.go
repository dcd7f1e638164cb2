package relay

import (
	"fmt"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/feira-shop/feira/shared/eventstore"
	"github.com/feira-shop/feira/shared/faulttest"
)

// sideBySide is how many repetitions run at once in full: they mostly wait.
const sideBySide = 10

// Two processes relay one store, many stores side by side.
func TestFaultTwoRelays(t *testing.T) {
	t.Parallel()
	run := faulttest.Begin(t, faulttest.Plan{Number: 3, Name: "Two relays",
		Does: "stops the leader's process for 20 s, ends its session or both: the order of each key holds, the other takes over within 10 s, the woken leader writes at most one batch"})
	times := run.Times(2, 30)
	d := &duels{run: run, hold: run.For(5*time.Second, 20*time.Second)}
	var all sync.WaitGroup
	for lane := range sideBySide {
		all.Go(func() {
			for i := lane; i < times; i += sideBySide {
				t.Run(fmt.Sprint(i), func(t *testing.T) { d.fight(t, i) }) // at once, however many tests may run in parallel
			}
		})
	}
	all.Wait()
	if times >= 8 && d.woken == 0 { // one that is slow to wake gives up before it sends, but not all are
		t.Error("no woken leader wrote anything, so this proves nothing about them")
	}
	run.Found("takeover, slowest", d.slowest.Round(time.Millisecond).String())
}

const longestTakeover = 10 * time.Second

type duels struct {
	run  *faulttest.Run
	hold time.Duration

	mu      sync.Mutex
	slowest time.Duration
	woken   int64 // records that leaders wrote which had been replaced
}

func (d *duels) fight(t *testing.T, i int) {
	t.Helper()
	dice := d.run.Dice()
	e := newEnv(t, threePartitions())
	stores := []*eventstore.Store{e.store(3)}
	newLoad := func() *load {
		l := &load{e: e, stores: stores, writers: 4, perTx: 1, pace: 20 * time.Millisecond, dice: d.run.Dice}
		l.start()
		return l
	}
	l := newLoad()

	// The first one stops itself where it hurts, and only it can lead.
	at := []point{beforeSend, afterAck, beforeCursor, afterCursor}[i%4]
	first := e.process(signalAt(at, 5+dice.IntN(20), syscall.SIGSTOP))
	e.until("the first one leads", func() bool { return e.holder() != 0 })
	e.process()
	first.frozen()
	began, leader := time.Now(), e.holder()
	d.run.Count("processes stopped", 1)
	if i%8 >= 4 { // else the server finds out by itself
		e.exec("select pg_terminate_backend($1)", leader)
		d.run.Count("sessions ended", 1)
	}
	d.takenOver(e, leader, began)
	rest(t.Context(), time.Until(began.Add(d.hold)), nil)

	// Nobody but the woken one can write now.
	l.end()
	e.drained()
	before := e.ends()
	first.thaw()
	e.until("the woken one asks for the lead again", func() bool { return e.sessions() == 2 })
	woken := e.ends() - before
	d.run.Count("records of woken leaders", int(woken))
	if woken > maxEvents || at != beforeSend && woken != 0 {
		t.Errorf("stopped at %s, the woken leader wrote %d records: at most one batch was expected, and none unless it was about to", at, woken)
	}
	d.mu.Lock()
	d.woken += woken
	d.mu.Unlock()

	again := newLoad()
	leader, began = e.holder(), time.Now()
	e.exec("select pg_terminate_backend($1)", leader)
	d.run.Count("sessions ended", 1)
	d.takenOver(e, leader, began)
	again.end()
	e.drained()
	d.run.Count("events", int(l.committed.Load()+again.committed.Load()))
	d.run.Count("records sent again", e.oracle(l.committed.Load()+again.committed.Load()))
}

// takenOver waits until another session leads and has published.
func (d *duels) takenOver(e *env, leader int, began time.Time) {
	e.t.Helper()
	from := e.cursor()
	e.within(patience/2, "another one leads and publishes", func() bool {
		now := e.holder()
		return now != 0 && now != leader && e.cursor() > from
	})
	took := time.Since(began)
	d.mu.Lock()
	d.slowest = max(d.slowest, took)
	d.mu.Unlock()
	if took > longestTakeover {
		e.t.Errorf("the takeover took %s", took)
	}
}

// sessions is how many relays are connected.
func (e *env) sessions() (n int) {
	e.t.Helper()
	e.scan(&n, "select count(*) from pg_stat_activity where application_name = 'relay' and datname = current_database()")
	return n
}
