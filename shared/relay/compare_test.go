package relay

import (
	"errors"
	"testing"

	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/kafka"
)

// dump keeps the store and the relay's tables as they are, in one transaction as a real dump does.
func (e *env) dump() {
	e.exec(`create schema dump; create table dump.events as table events; create table dump.relay_cursor as table relay_cursor;
create table dump.relay_partitions as table relay_partitions`)
}

// restore brings the dump back into the same database, the identity sequence included.
func (e *env) restore() {
	e.exec(`truncate events, relay_cursor, relay_partitions;
insert into events overriding system value table dump.events; insert into relay_cursor table dump.relay_cursor;
insert into relay_partitions table dump.relay_partitions;
select setval(pg_get_serial_sequence('events', 'position'), (select max(position) from events))`)
}

func TestARestoredStoreIsANamedStop(t *testing.T) {
	t.Parallel()
	for name, after := range map[string]func(e *env){
		"nothing new":          func(*env) {},
		"positions are reused": func(e *env) { e.append(placed, keys(40)...) },
		"and more":             func(e *env) { e.append(placed, keys(400)...) },
		// The last record of the log is there again, the ones before it are not.
		"only the last is known": func(e *env) {
			log := e.log(kafka.Partition("one", 1, 6))
			r := log[len(log)-1]
			e.exec(`insert into events (position, stream, version, type, key, data, meta) overriding system value
values ($1, 'order-x', 1, $2, 'one', '{}', json_build_object('id', $3::text))`, r.Sequence, r.Type, r.ID)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newEnv(t, events.Orders)
			e.append(placed, keys(60)...)
			_, stop := e.start()
			e.drained()
			e.dump()
			lost := make([]string, 41)
			for i := range lost {
				lost[i] = "one"
			}
			e.append(placed, lost...)
			e.drained()
			stop()
			e.restore()
			after(e)
			before := e.ends()
			r, stop := e.start()
			e.until("the relay has stopped", func() bool { return r.Health() != nil })
			var restored *StoreRestoredError
			if !errors.As(r.Health(), &restored) || restored.Position <= 60 || restored.Position > 101 {
				t.Errorf("got %v", r.Health())
			}
			stop()
			if e.ends() != before || e.cursor() != 60 {
				t.Errorf("published %d more, cursor at %d", e.ends()-before, e.cursor())
			}
		})
	}
}

func TestACleanRestoreGoesOn(t *testing.T) {
	t.Parallel()
	e := newEnv(t, events.Orders)
	e.append(placed, keys(60)...)
	_, stop := e.start()
	e.drained()
	stop()
	e.append(placed, keys(40)...) // not published yet
	e.dump()
	e.restore()
	e.exec("update relay_cursor set database = 'system 1, timeline 1, database 1, table 1'")
	e.start()
	e.drained()
	if n := e.check(); n != 0 {
		t.Errorf("%d events were repeated", n)
	}
	var known bool
	if e.scan(&known, "select database = relay_database() from relay_cursor"); !known {
		t.Error("the new database is not noted")
	}
}

// The events were sent and the cursor could not be moved: they are in the store, and are sent again.
func TestACrashBeforeTheCursorMovedGoesOn(t *testing.T) {
	t.Parallel()
	e := newEnv(t, events.Orders)
	e.append(placed, keys(60)...)
	_, stop := e.start()
	e.drained()
	e.dump()
	e.append(placed, keys(40)...)
	e.drained()
	stop()
	e.exec("truncate relay_cursor, relay_partitions; insert into relay_cursor table dump.relay_cursor; insert into relay_partitions table dump.relay_partitions")
	e.start()
	e.drained()
	if n := e.check(); n != 40 {
		t.Errorf("%d events were repeated, want 40", n)
	}
}

func TestALostLogIsANamedStop(t *testing.T) {
	t.Parallel()
	e := newEnv(t, events.Orders)
	e.append(placed, keys(60)...)
	_, stop := e.start()
	e.drained()
	stop()
	if err := e.broker.Cluster().DeleteTopic("orders"); err != nil {
		t.Fatal(err)
	}
	if err := kafka.EnsureTopics(t.Context(), e.broker.Config(""), []events.Topic{e.topic}, kafka.EnsureOptions{}); err != nil {
		t.Fatal(err)
	}
	r, stop := e.start()
	e.until("the relay has stopped", func() bool { return r.Health() != nil })
	var lost *LogLostError
	if !errors.As(r.Health(), &lost) || lost.End != 0 || lost.Want == 0 {
		t.Errorf("got %v", r.Health())
	}
	stop()

	// The runbook: publish the store anew.
	e.exec("update relay_cursor set position = 0, partitions = 0; delete from relay_partitions")
	e.start()
	e.drained()
	e.check()
}

func TestALogThatIsLostUnderARunningRelayIsANamedStop(t *testing.T) {
	t.Parallel()
	e := newEnv(t, events.Orders)
	e.append(placed, keys(60)...)
	r, _ := e.start()
	e.drained()
	if err := e.broker.Cluster().DeleteTopic("orders"); err != nil {
		t.Fatal(err)
	}
	if err := kafka.EnsureTopics(t.Context(), e.broker.Config(""), []events.Topic{e.topic}, kafka.EnsureOptions{}); err != nil {
		t.Fatal(err)
	}
	e.append(placed, "key-0")
	e.until("the relay has stopped", func() bool { return r.Health() != nil })
	var lost *LogLostError
	if !errors.As(r.Health(), &lost) || e.cursor() != 60 {
		t.Errorf("got %v, cursor at %d", r.Health(), e.cursor())
	}
}

// Records of others are not the store's, whatever they claim.
func TestStrangersAreNotCompared(t *testing.T) {
	t.Parallel()
	e := newEnv(t, events.Orders)
	p, err := kafka.NewPublisher(e.broker.Config("stranger"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = p.Close() }()
	stranger := events.Recorded{Meta: events.Meta{ID: "1"}, Type: placed, Source: "/elsewhere", Sequence: 1, HasPrevious: true}
	for _, r := range []kafka.Record{{Value: []byte{0xff}}, {Value: []byte("{}"), Headers: headersOf(events.Headers(stranger))}} {
		if _, err := p.Send(t.Context(), e.topic.Name, []kafka.Record{r}); err != nil {
			t.Fatal(err)
		}
	}
	e.append(placed, keys(5)...)
	r, _ := e.start()
	e.drained()
	if err := r.Health(); err != nil {
		t.Error(err)
	}
}
