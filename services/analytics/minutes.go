package analytics

import (
	"context"
	_ "embed"
	"maps"
	"slices"
	"time"

	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/eventstore"
	"github.com/feira-shop/feira/shared/operator"
)

var (
	//go:embed sql/add_clicks.sql
	addClicks string
	//go:embed sql/add_orders.sql
	addOrders string
)

// clicks counts what users did, per action and minute. Its tables are not said to be made of the topic alone: the topic
// keeps a week, and they keep everything.
var clicks = operator.Definition{
	Name:    "analytics.clicks",
	Topics:  []events.Topic{events.Clicks},
	Types:   []string{events.UserActed{}.EventType()},
	Handler: func(*eventstore.Store) operator.Handler { return clickCounter{} },
}

// placed counts orders, per minute.
var placed = operator.Definition{
	Name:    "analytics.orders",
	Topics:  []events.Topic{events.Orders},
	Types:   []string{events.OrderPlaced{}.EventType()},
	Tables:  []string{"orders_per_minute"},
	Handler: func(*eventstore.Store) operator.Handler { return orderCounter{} },
}

type clickCounter struct{}

// Apply adds the batch up and writes each action and minute once. Rows are written in one order everywhere, so that two
// processes that count for the same minute wait for each other and never deadlock.
func (clickCounter) Apply(_ context.Context, tx *eventstore.Tx, batch []operator.Record) error {
	counts := map[Cell]int64{}
	for _, r := range batch {
		if e, ok := r.Event.(events.UserActed); ok {
			counts[CellOf(e)]++
		}
	}
	var actions []string
	var minutes []time.Time
	var numbers []int64
	for _, c := range slices.SortedFunc(maps.Keys(counts), compareCells) {
		actions, minutes, numbers = append(actions, c.Action), append(minutes, c.Minute), append(numbers, counts[c])
	}
	if len(actions) > 0 {
		tx.Later(addClicks, actions, minutes, numbers)
	}
	return nil
}

type orderCounter struct{}

// Apply adds the batch up and writes each minute once.
func (orderCounter) Apply(_ context.Context, tx *eventstore.Tx, batch []operator.Record) error {
	counts := map[time.Time]int64{}
	for _, r := range batch {
		if e, ok := r.Event.(events.OrderPlaced); ok {
			counts[e.PlacedAt.UTC().Truncate(time.Minute)]++
		}
	}
	var minutes []time.Time
	var numbers []int64
	for _, m := range slices.SortedFunc(maps.Keys(counts), time.Time.Compare) {
		minutes, numbers = append(minutes, m), append(numbers, counts[m])
	}
	if len(minutes) > 0 {
		tx.Later(addOrders, minutes, numbers)
	}
	return nil
}
