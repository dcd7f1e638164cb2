package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/IBM/sarama"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/feira-shop/feira/internal/shop"
	"github.com/feira-shop/feira/shared/jobs"
	"github.com/feira-shop/feira/shared/kafka"
	"github.com/feira-shop/feira/shared/operator"
	"github.com/feira-shop/feira/shared/relay"
	"github.com/feira-shop/feira/shared/service"
)

type operatorsCmd struct {
	admin   `embed:""`
	brokers `embed:""`

	Service    string `arg:"" optional:"" help:"Only this service's; no other database is needed then."`
	Partitions bool   `help:"A line for each partition instead of one for each topic."`
}

// Run lists operators.
func (c *operatorsCmd) Run(ctx context.Context) error {
	picked := shop.Services(shop.Config{})
	if c.Service != "" {
		var err error
		if picked, err = shop.Select(picked, c.Service); err != nil {
			return err
		}
	}
	client, err := kafka.NewClient(c.kafka("feira-admin"))
	if err != nil {
		return fmt.Errorf("ask Kafka where the topics end: %w", err)
	}
	defer client.Close()
	rows := [][]string{{"OPERATOR", "TOPIC", "LAG", "NEXT", "PARKED", "UPDATED", "STATE"}}
	for _, d := range picked {
		more, err := c.service(ctx, client, d)
		if err != nil {
			return err
		}
		rows = append(rows, more...)
	}
	return table(rows)
}

func (c *operatorsCmd) service(ctx context.Context, client sarama.Client, d service.Definition) ([][]string, error) {
	pool, err := c.open(ctx, d.Name)
	if err != nil {
		return nil, err
	}
	defer pool.Close()
	list, err := operator.List(ctx, pool)
	if err != nil {
		return nil, err
	}
	var rows [][]string
	for _, s := range list {
		lags, err := operator.Lags(client, s)
		if err != nil {
			return nil, err
		}
		rows = append(rows, c.rows(s, lags)...)
	}
	if d.Publishes.Name != "" {
		r, err := relay.StatusOf(ctx, pool, d.Publishes)
		if err != nil {
			return nil, err
		}
		rows = append(rows, relayRow(d, r))
	}
	if len(d.Jobs) > 0 {
		paused, err := jobs.Paused(ctx, pool)
		if err != nil {
			return nil, err
		}
		rows = append(rows, []string{d.Name + " jobs", "", "", "", "", "", state(operator.Status{Paused: paused}, nil)})
	}
	return rows, nil
}

// relayRow shows the relay like an operator of its store: NEXT is a position, and LAG counts positions.
func relayRow(d service.Definition, r relay.Status) []string {
	what := "running"
	if r.Stopped != "" {
		what = "stopped: " + printable(r.Stopped)
	} else if r.Oldest > time.Second {
		what += fmt.Sprintf(", the oldest event waits for %s", r.Oldest.Round(time.Second))
	}
	return []string{d.Name + " relay", d.Publishes.Name, strconv.FormatInt(r.Waiting, 10), strconv.FormatInt(r.Position+1, 10), "", "", what}
}

// rows is one line per topic, or per partition.
func (c *operatorsCmd) rows(s operator.Status, lags []operator.Lag) [][]string {
	lines, order := map[string]*line{}, []string{}
	for i, p := range s.Partitions {
		name := p.Topic
		if c.Partitions {
			name = fmt.Sprintf("%s/%d", p.Topic, p.Partition)
		}
		l := lines[name]
		if l == nil {
			l = &line{}
			lines[name] = l
			order = append(order, name)
		}
		if i < len(lags) {
			l.lag += lags[i].Records
			l.gone = l.gone || lags[i].Gone
		}
		l.next += max(p.NextOffset, 0)
		l.parked += p.Parked
		if p.UpdatedAt.After(l.updated) {
			l.updated = p.UpdatedAt
		}
		for _, stop := range s.Stops {
			if stop.Topic == p.Topic && (stop.Partition == p.Partition || stop.Partition < 0) && !slices.Contains(l.stops, stop.Message) {
				l.stops = append(l.stops, stop.Message)
			}
		}
	}
	var rows [][]string
	for _, name := range order {
		l := lines[name]
		rows = append(rows, []string{
			s.Operator, name, strconv.FormatInt(l.lag, 10), strconv.FormatInt(l.next, 10), strconv.FormatInt(l.parked, 10),
			time.Since(l.updated).Round(time.Second).String() + " ago", state(s, l.stops) + l.missing(),
		})
	}
	return rows
}

// line is what is shown of a topic, or of a partition.
type line struct {
	lag, next, parked int64
	updated           time.Time
	stops             []string
	gone              bool // of a partition, and so of a topic that had it
}

// missing says that there is a checkpoint for which the topic has no partition.
func (l *line) missing() string {
	if l.gone {
		return "; the topic has fewer partitions now"
	}
	return ""
}

// state is in a word what an operator does; it stops as a whole, whichever partition it stopped for.
func state(s operator.Status, stops []string) string {
	switch {
	case len(stops) > 0:
		return "stopped: " + printable(strings.Join(stops, "; "))
	case len(s.Stops) > 0:
		return "stopped"
	case s.Paused:
		return "paused"
	}
	return "running"
}

type pauseCmd struct {
	admin `embed:""`

	Name string `arg:"" help:"An operator, such as orders.process, or a service, such as payments, with all its operators and jobs."`
}

// Run pauses.
func (c *pauseCmd) Run(ctx context.Context) error {
	return c.each(ctx, c.Name, "paused", operator.Pause, jobs.Pause)
}

type resumeCmd struct {
	admin `embed:""`

	Name string `arg:"" help:"An operator, such as orders.process, or a service, such as payments, with all its operators and jobs."`
}

// Run resumes.
func (c *resumeCmd) Run(ctx context.Context) error {
	return c.each(ctx, c.Name, "resumed", operator.Resume, jobs.Resume)
}

// each does something to an operator, or to all operators and the jobs of a service.
func (a admin) each(ctx context.Context, name, done string,
	toOperator func(context.Context, *pgxpool.Pool, string, string) error, toJobs func(context.Context, *pgxpool.Pool) error,
) error {
	serviceName, _, single := strings.Cut(name, ".")
	pool, err := a.open(ctx, serviceName)
	if err != nil {
		return err
	}
	defer pool.Close()
	if single {
		if err := toOperator(ctx, pool, name, a.who()); err != nil {
			return err
		}
		fmt.Println(done, name)
		return nil
	}
	picked, err := shop.Select(shop.Services(shop.Config{}), serviceName)
	if err != nil {
		return err
	}
	for _, o := range picked[0].Operators {
		if err := toOperator(ctx, pool, o.Name, a.who()); err != nil {
			return err
		}
		fmt.Println(done, o.Name)
	}
	if len(picked[0].Jobs) == 0 {
		return nil
	}
	if err := toJobs(ctx, pool); err != nil {
		return err
	}
	fmt.Println(done, "the jobs of", serviceName)
	return nil
}
