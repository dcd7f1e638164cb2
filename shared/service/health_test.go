package service

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/eventstore"
	"github.com/feira-shop/feira/shared/operator"
)

func failing(r *Running) map[string]error {
	bad := map[string]error{}
	for name, check := range r.Checks() {
		if err := check(context.Background()); err != nil {
			bad[name] = err
		}
	}
	return bad
}

// A stopped operator is named; the service's other parts go on.
func TestHealthNamesWhatStopped(t *testing.T) {
	t.Parallel()
	d := definition()
	d.Operators = append(d.Operators, mirrored("loyalty.second"))
	d.Operators[1].Handler = func(*eventstore.Store) operator.Handler { return deaf{} }
	notYet := errors.New("the shelves are empty")
	d.Ready = func(context.Context, Runtime) error { return notYet }
	g := newGround(t, d)
	g.loseHistory("loyalty.mirror")
	r := g.start(d)
	g.await("the stop of one operator, and of nothing else", func() bool {
		bad := failing(r)
		mirror := bad["operator loyalty.mirror"]
		return len(bad) == 2 && mirror != nil && strings.Contains(mirror.Error(), "operator loyalty.mirror: history lost") && errors.Is(bad["data"], notYet)
	})
	var names []string
	for name := range r.Checks() {
		names = append(names, name)
	}
	if len(names) != 5 { // database, relay, data and two operators
		t.Errorf("checked are %v", names)
	}
}

type deaf struct{}

func (deaf) Apply(context.Context, *eventstore.Tx, []operator.Record) error { return nil }

// loseHistory deletes records that an operator has not applied.
func (g *ground) loseHistory(name string) {
	g.t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(g.broker.Brokers()...), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		g.t.Fatal(err)
	}
	defer client.Close()
	for range 5 {
		if err := client.ProduceSync(g.t.Context(), &kgo.Record{Topic: events.Loyalty.Name, Value: []byte("{}")}).FirstErr(); err != nil {
			g.t.Fatal(err)
		}
	}
	offsets := kadm.Offsets{}
	offsets.Add(kadm.Offset{Topic: events.Loyalty.Name, Partition: 0, At: 5})
	if _, err := kadm.NewClient(client).DeleteRecords(g.t.Context(), offsets); err != nil {
		g.t.Fatal(err)
	}
	_, err = g.db.Pool.Exec(g.t.Context(), `insert into checkpoints (operator, topic, partition, next_offset, source_position, adopt, epoch, topic_id)
		select $1, $2, p, 0, 0, false, 0, '' from generate_series(0, $3::int - 1) p`, name, events.Loyalty.Name, events.Loyalty.Partitions)
	if err != nil {
		g.t.Fatal(err)
	}
}
