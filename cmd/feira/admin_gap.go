package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/IBM/sarama"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/feira-shop/feira/internal/shop"
	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/eventstore"
	"github.com/feira-shop/feira/shared/kafka"
	"github.com/feira-shop/feira/shared/operator"
)

// gap names a hole.
type gap struct {
	brokers `embed:""`

	Operator  string `arg:"" help:"The operator that stopped."`
	Topic     string `arg:"" help:"The topic."`
	Partition string `arg:"" help:"The partition's number; all for the whole topic: each partition that it stopped for or would stop for next, or a topic that was replaced."`

	DryRun bool `help:"Only say what is missing and what would be done; nothing is changed."`
}

// hole reads the arguments.
func (g gap) hole() (operator.Gap, error) {
	hole := operator.Gap{Operator: g.Operator, Topic: g.Topic, Partition: -1}
	if g.Partition == "all" {
		return hole, nil
	}
	n, err := strconv.ParseInt(g.Partition, 10, 32)
	if err != nil || n < 0 {
		return hole, fmt.Errorf("%q is no partition: it is a number from 0, or all", g.Partition)
	}
	hole.Partition = int32(n)
	return hole, nil
}

// topic finds the topic in the catalogue of topics.
func (g gap) topic() (events.Topic, error) {
	for _, t := range events.Topics() {
		if t.Name == g.Topic {
			return t, nil
		}
	}
	return events.Topic{}, fmt.Errorf("there is no topic %q", g.Topic)
}

// holes lists what the operator stands before, with the help of Kafka.
func (g gap) holes(ctx context.Context, pool *pgxpool.Pool, client sarama.Client, topic events.Topic) ([]operator.Hole, error) {
	hole, err := g.hole()
	if err != nil {
		return nil, err
	}
	return operator.Holes(ctx, pool, client, topic, hole)
}

// client connects to Kafka.
func (g gap) client() (sarama.Client, error) {
	client, err := kafka.NewClient(g.kafka("feira-admin"))
	if err != nil {
		return nil, fmt.Errorf("ask Kafka what the topic still has: %w", err)
	}
	return client, nil
}

// wanted are the types that the operator takes; nil: all.
func (g gap) wanted() []string {
	for _, d := range shop.Services(shop.Config{}) {
		for _, o := range d.Operators {
			if o.Name == g.Operator {
				return o.Types
			}
		}
	}
	return nil
}

// owner opens the store that the topic's events come from.
func (a admin) owner(ctx context.Context, topic events.Topic) (operator.Owner, func(), error) {
	if topic.Owner == "" {
		return operator.Owner{}, nil, fmt.Errorf("no service owns the topic %q, so there is no store to fill the hole from", topic.Name)
	}
	pool, err := a.open(ctx, topic.Owner)
	if err != nil {
		return operator.Owner{}, nil, err
	}
	picked, err := shop.Select(shop.Services(shop.Config{}), topic.Owner)
	if err != nil {
		pool.Close()
		return operator.Owner{}, nil, err
	}
	store := eventstore.New(pool, eventstore.Options{Service: topic.Owner, Registry: picked[0].Registry()})
	return operator.Owner{Topic: topic, Store: store}, pool.Close, nil
}

type acceptGapCmd struct {
	admin `embed:""`
	gap   `embed:""`

	NewSource bool `help:"The owner's store was begun anew too, so that its positions start at 1 again."`
	Yes       bool `help:"Accept without asking: the missing events are never applied."`
}

// Run accepts gaps.
func (c *acceptGapCmd) Run(ctx context.Context) error {
	if err := canAnswer(c.Operator+" would go on without what is missing, for good", c.Yes || c.DryRun); err != nil {
		return err
	}
	topic, err := c.topic()
	if err != nil {
		return err
	}
	pool, err := c.of(ctx, c.Operator)
	if err != nil {
		return err
	}
	defer pool.Close()
	client, err := c.client()
	if err != nil {
		return err
	}
	defer client.Close()
	holes, err := c.holes(ctx, pool, client, topic)
	if err != nil {
		return err
	}
	if !c.Yes || c.DryRun {
		if err := c.show(ctx, topic, holes); err != nil {
			return err
		}
	}
	if c.DryRun {
		fmt.Println("nothing was changed")
		return nil
	}
	what := fmt.Sprintf("%s would go on without what is missing in %s of %s, for good", c.Operator, plural(len(holes), "place"), c.Topic)
	if err := confirm(ctx, what, c.Yes); err != nil {
		return err
	}
	for _, h := range holes {
		if err := operator.AcceptHole(ctx, pool, h, c.NewSource, c.who()); err != nil {
			return err
		}
	}
	fmt.Printf("accepted in %s; %s goes on by itself\n", plural(len(holes), "place"), c.Operator)
	return nil
}

// show says what would be given up, as far as the owner's store knows it.
func (c *acceptGapCmd) show(ctx context.Context, topic events.Topic, holes []operator.Hole) error {
	owner, done, noStore := c.owner(ctx, topic)
	if noStore == nil {
		defer done()
	}
	rows := [][]string{{"PLACE", "STOPPED FOR", "GIVEN UP", "GOES ON AT"}}
	for _, h := range holes {
		lost := ""
		if h.Resume >= 0 && h.Next >= 0 && h.Kind == "history_lost" {
			lost = fmt.Sprintf("records of offsets %d to %d; ", h.Next, h.Resume-1)
		}
		f, err := operator.Fill{Hole: h}, noStore
		if err == nil {
			f, err = operator.PlanFill(ctx, owner, h, c.wanted())
		}
		var replaced *operator.NotFoundError
		switch {
		case errors.As(err, &replaced):
			lost = fmt.Sprintf("whatever the topic lost; what the operator has applied (up to position %d) is not applied twice", h.Have)
			if h.Partition < 0 {
				lost = "whatever the topic lost; what the operator has applied is not applied twice"
			}
			if c.NewSource {
				lost = "whatever the topic lost; the topic is applied from its beginning, as that of a new store"
			}
		case err != nil:
			lost += "how many events is not known: " + err.Error()
		default:
			lost += fillText(f, c.Operator)
		}
		rows = append(rows, []string{placeOf(h), stoppedFor(h), printable(lost), resumes(h)})
	}
	return table(rows)
}

// fillText says how many events a hole has, in words.
func fillText(f operator.Fill, name string) string {
	if f.Events == 0 {
		return "no event"
	}
	text := fmt.Sprintf("%s at positions %d to %d of the owner's store, %d of types that %s takes", plural(f.Events, "event"), f.First, f.Last, f.Wanted, name)
	if f.Open {
		text += " (all that is not applied yet: no record behind the hole tells where it ends)"
	}
	return text
}

func placeOf(h operator.Hole) string {
	if h.Partition < 0 {
		return h.Topic
	}
	return fmt.Sprintf("%s/%d", h.Topic, h.Partition)
}

func stoppedFor(h operator.Hole) string {
	if h.Met {
		return h.Kind
	}
	return h.Kind + " (next)"
}

func resumes(h operator.Hole) string {
	if h.Resume < 0 {
		return "the first record"
	}
	return "offset " + strconv.FormatInt(h.Resume, 10)
}
