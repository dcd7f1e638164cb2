package operator

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/faulttest"
	"github.com/feira-shop/feira/shared/kafka"
)

// lasting gives the world a broker that can be stopped and started again, with all that it knows.
func (w *world) lasting() (start func()) {
	w.t.Helper()
	w.broker.Close()
	dir, address := w.t.TempDir(), ""
	start = func() {
		w.t.Helper()
		var err error
		w.broker, err = kafka.StartEmbedded(context.Background(), kafka.EmbeddedOptions{Listen: address, Dir: dir})
		if err != nil {
			w.t.Fatal(err)
		}
		w.t.Cleanup(w.broker.Close)
		address = w.broker.Brokers()[0]
	}
	start()
	w.kafka = w.broker.Config("tests")
	if err := kafka.EnsureTopics(context.Background(), w.kafka, []events.Topic{facts}, kafka.EnsureOptions{}); err != nil {
		w.t.Fatal(err)
	}
	w.connect()
	return start
}

// The broker stops, and is back later with its log. At the end it stops for good, and the process does, too.
func TestFaultBrokerAway(t *testing.T) {
	t.Parallel()
	run := faulttest.Begin(t, faulttest.Plan{
		Number: 8, Name: "The broker away",
		Does: "the broker stops under load for a while: progress within 30 s of its return, without a restart, every event once; " +
			"then it stops for good, and a SIGTERM ends the process with exit code 0 in less than 30 s",
	})
	for i := range run.Times(1, 5) {
		t.Run(strconv.Itoa(i), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			start := w.lasting()
			w.start(w.operator(w.definition(&ledger{}, facts), "m1"))
			p := w.process(t, "m2", "")
			load := w.load(run.Dice(), 60*time.Millisecond)
			w.await("effects", func() bool { return w.effects() > 100 })
			w.broker.Close()
			away := time.After(run.For(4*time.Second, time.Minute))
			<-away
			n := w.effects()
			start()
			back := time.Now()
			w.await("progress", func() bool { return w.effects() > n })
			took := time.Since(back)
			if took > 30*time.Second {
				t.Errorf("progress %s after the broker was back, want less than 30 s", took)
			}
			run.Count("stops", 1)
			run.Found("progress after the return", took.Round(100*time.Millisecond).String())
			w.agrees(load.stop(), nil)
			w.broker.Close()
			if took := p.end(); took > 30*time.Second {
				t.Errorf("the process took %s to end without a broker, want less than 30 s", took)
			}
		})
	}
}

// behind gives the world a broker that can only be reached through a network.
func (w *world) behind() *faulttest.Network {
	w.t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		w.t.Fatal(err)
	}
	network := faulttest.Before(w.t, listener.Addr().String())
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(facts.Partitions, facts.Name),
		kfake.ListenFn(func(string, string) (net.Listener, error) { return elsewhere{listener, network.Address()}, nil }))
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(cluster.Close)
	w.kafka = kafka.Config{Brokers: []string{network.Address()}, ClientID: "tests"}
	w.connect()
	return network
}

// elsewhere is a listener that says it listens at another address: the one that the broker tells its clients.
type elsewhere struct {
	net.Listener
	address string
}

func (e elsewhere) Addr() net.Addr {
	address, err := net.ResolveTCPAddr("tcp", e.address)
	if err != nil {
		return e.Listener.Addr()
	}
	return address
}

func TestFaultBrokerCuts(t *testing.T) {
	t.Parallel()
	run := faulttest.Begin(t, faulttest.Plan{
		Number: 8, Name: "Connections to the broker cut",
		Does: "all connections of the consumers and of who publishes are cut under load, or let nothing through for a moment: every event took effect once",
	})
	w := newWorld(t)
	network, dice := w.behind(), run.Dice()
	w.start(w.operator(w.definition(&ledger{}, facts), "m1"))
	w.start(w.operator(w.definition(&ledger{}, facts), "m2"))
	load := w.load(run.Dice(), 60*time.Millisecond)
	for range run.Times(4, 50) {
		more := w.effects() + dice.IntN(100)
		w.await("effects", func() bool { return w.effects() > more })
		if dice.IntN(4) == 0 {
			network.Hang()
			<-time.After(time.Duration(dice.Int64N(int64(run.For(3*time.Second, 20*time.Second)))))
		}
		network.Down()
		network.Heal() // what got lost on the way does not come any more
		network.Up()
		run.Count("cuts", 1)
	}
	log := load.stop()
	w.agrees(log, nil)
	run.Count("events", len(log))
}

// A partition that is added under a running operator is read from its beginning, also by one that began with Now.
func TestFaultPartitionAdded(t *testing.T) {
	t.Parallel()
	run := faulttest.Begin(t, faulttest.Plan{
		Number: 8, Name: "A partition added while producing", Does: "a topic gets a partition while events are published and applied: none is lost, no restart",
	})
	w := newWorld(t, facts)
	o := w.operator(w.definition(&ledger{}, facts), "m1")
	w.start(o)
	log := w.publishFacts(facts, 30)
	w.awaitEffects(len(log))
	if _, err := w.admin().CreatePartitions(t.Context(), 1, facts.Name); err != nil {
		t.Fatal(err)
	}
	w.connect() // who publishes knows at once
	wider := facts
	wider.Partitions++
	added := time.Now()
	w.await("effects of the new partition", func() bool {
		log = append(log, w.publishFacts(wider, 4)...)
		<-time.After(20 * time.Millisecond) // some 200 events a second
		return w.count("select count(*) from effects where partition = $1", facts.Partitions) > 0
	})
	run.Found("read after", time.Since(added).Round(100*time.Millisecond).String())
	w.agrees(log, nil)
	if err := o.Health(); err != nil {
		t.Error(err)
	}
	run.Count("events", len(log))
}

// Records are deleted that a running consumer was about to read: neither it nor the group jumps over them.
func TestFaultHistoryLostUnderAConsumer(t *testing.T) {
	t.Parallel()
	run := faulttest.Begin(t, faulttest.Plan{
		Number: 8, Name: "Records deleted under a running consumer",
		Does: "records that a running consumer has not read yet are deleted: it applies what it has, and stops by name at the first that is gone",
	})
	const all, left = 8000, 100
	w := newWorld(t, facts)
	busy := newGate()
	def := w.definition(&ledger{}, facts)
	def.MaxBatch = 5
	o := w.operator(def, "m1")
	o.hooks.reached = busy.before(beforeBegin)
	w.start(o)
	t.Cleanup(busy.release)
	dice := run.Dice()
	log := make([]*kgo.Record, all)
	for i := range log { // too many bytes to be read ahead, and random ones, which cannot be compressed
		log[i] = w.fact(facts, 0, fmt.Sprintf("%0512x", random(dice, 256)))
	}
	w.publish(log...)
	w.awaitSignal("a batch before its beginning", busy.came)
	w.deleteBefore(facts, 0, all-left)
	busy.release()
	stop := w.awaitStop(o)
	if stop.Kind != kindHistoryLost {
		t.Fatalf("stopped as %+v", stop)
	}
	read := w.effects()
	run.Count("events lost", all-left-read)
	if read >= all-left || read == 0 {
		t.Errorf("%d events were read before the others were deleted: the test proves nothing", read)
	}
	w.accept(o, stop)
	w.await("what is left", func() bool { return w.effects() >= read+left })
	want, _ := oracle(append(log[:read:read], log[all-left:]...), nil)
	w.same("effects", w.read("select partition, id from effects order by n"), want)
}

func random(dice *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(dice.IntN(256))
	}
	return b
}
