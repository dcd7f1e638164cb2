package decider

import (
	"context"
	"slices"

	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/eventstore"
	"github.com/feira-shop/feira/shared/operator"
)

// Operator is an operator of kind decide: events become commands of streams. Topics and types follow from
// the routes.
func Operator[S any](name string, d Decider[S], routes ...Route) operator.Definition {
	def := operator.Definition{Name: name}
	byType := map[string][]Route{}
	for _, route := range routes {
		byType[route.Type] = append(byType[route.Type], route)
		topic, ok := events.TopicOf(route.Type)
		if !ok {
			// Kafka refuses such a name, so the operator stops at its start and says why.
			topic = events.Topic{Name: "no topic publishes " + route.Type}
		}
		if !slices.ContainsFunc(def.Topics, func(t events.Topic) bool { return t.Name == topic.Name }) {
			def.Topics = append(def.Topics, topic)
		}
		for _, typ := range events.Versions(route.Type) {
			if !slices.Contains(def.Types, typ) {
				def.Types = append(def.Types, typ)
			}
		}
	}
	def.Handler = func(*eventstore.Store) operator.Handler { return &handler[S]{d, byType} }
	return def
}

// handler applies batches. It keeps nothing between them.
type handler[S any] struct {
	decider Decider[S]
	routes  map[string][]Route // by the newest version of the type
}

// command is what one record means to one stream.
type command struct {
	stream string
	cmd    any
	cause  *operator.Record
}

// Apply decides the commands of a batch in the order of its records.
func (h *handler[S]) Apply(ctx context.Context, tx *eventstore.Tx, batch []operator.Record) error {
	commands, streams := h.route(batch)
	if len(commands) == 0 {
		return nil
	}
	aggregates, err := h.load(ctx, tx, streams)
	if err != nil {
		return err
	}
	for _, c := range commands {
		if _, err := h.decider.run(aggregates[c.stream], c.cmd, events.Answering(c.cause.Recorded)); err != nil {
			return operator.Reject(err)
		}
	}
	// In the order in which the batch touched them, so that events keep about the order of their causes.
	for _, name := range streams {
		a := aggregates[name]
		if len(a.events) == 0 {
			continue
		}
		request, err := h.decider.request(a)
		if err != nil {
			return operator.Reject(err)
		}
		tx.Append(request)
	}
	return nil
}

// route gives the commands of a batch, and their streams without repetition.
func (h *handler[S]) route(batch []operator.Record) (commands []command, streams []string) {
	commands = make([]command, 0, len(batch))
	seen := make(map[string]bool, len(batch))
	for i := range batch {
		record := &batch[i]
		if record.Event == nil {
			continue
		}
		for _, route := range h.routes[record.Event.EventType()] {
			stream, cmd := route.Route(record.Recorded)
			if stream == "" {
				continue
			}
			commands = append(commands, command{stream, cmd, record})
			if !seen[stream] {
				seen[stream] = true
				streams = append(streams, stream)
			}
		}
	}
	return commands, streams
}

// load locks all streams of a batch at once and restores their states.
func (h *handler[S]) load(ctx context.Context, tx *eventstore.Tx, streams []string) (map[string]*aggregate[S], error) {
	kept, err := tx.Load(ctx, streams)
	if err != nil {
		return nil, err
	}
	aggregates := make(map[string]*aggregate[S], len(streams))
	for _, name := range streams {
		state, err := h.decider.Restore(kept[name], func() ([]events.Recorded, error) { return tx.History(ctx, name) })
		if err != nil {
			return nil, err
		}
		aggregates[name] = &aggregate[S]{stream: name, version: kept[name].Version, state: state}
	}
	return aggregates, nil
}
