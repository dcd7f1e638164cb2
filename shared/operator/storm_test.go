package operator

import (
	"sync"
	"testing"
	"time"

	"github.com/feira-shop/feira/shared/eventstore"
	"github.com/feira-shop/feira/shared/faulttest"
)

// What the other tests do one by one, all at once.
func TestFaultStorm(t *testing.T) {
	t.Parallel()
	run := faulttest.Begin(t, faulttest.Plan{
		Name: "Everything at once",
		Does: "members come and go while their connections to database and broker are cut, or let nothing through for a moment, " +
			"batches fail and some events can never be applied: each event took effect once or is parked as the log alone says, " +
			"and state in memory is that of the database",
	})
	w := newWorld(t)
	broker := w.behind()
	database, dsn := faulttest.BeforePostgres(t, w.db.DSN)
	w.use(dsn, 8)
	poison, before, members := poisonous(run.Dice()), shaky(run.Dice()), &crowd{}
	def := w.definition(nil, facts)
	def.MaxBatch = 25
	def.Handler = func(*eventstore.Store) Handler {
		return members.add(&remembering{ledger: ledger{poison: poison, before: before}})
	}
	load := w.load(run.Dice(), 60*time.Millisecond)
	end := weather(run, broker, database)
	w.churn(run, def)
	end()
	log := load.stop()
	w.agrees(log, poison)
	w.awaitMemory(members)
	run.Count("events", len(log))
}

// weather cuts networks, or has them let nothing through for a moment, until its end.
func weather(run *faulttest.Run, networks ...*faulttest.Network) (end func()) {
	stop, dice := make(chan struct{}), run.Dice()
	var faults sync.WaitGroup
	faults.Go(func() {
		for {
			select {
			case <-stop:
				return
			case <-time.After(time.Duration(300+dice.IntN(1500)) * time.Millisecond):
			}
			network := networks[dice.IntN(len(networks))]
			if dice.IntN(3) == 0 {
				network.Hang()
				<-time.After(time.Duration(dice.IntN(2000)) * time.Millisecond)
			}
			network.Down()
			network.Heal() // what got lost on the way does not come any more
			network.Up()
			run.Count("cuts", 1)
		}
	})
	return func() {
		close(stop)
		faults.Wait()
	}
}
