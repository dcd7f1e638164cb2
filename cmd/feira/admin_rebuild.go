package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"golang.org/x/term"

	"github.com/feira-shop/feira/internal/shop"
	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/eventstore"
	"github.com/feira-shop/feira/shared/kafka"
	"github.com/feira-shop/feira/shared/operator"
	"github.com/feira-shop/feira/shared/service"
)

type rebuildCmd struct {
	admin   `embed:""`
	brokers `embed:""`
	judging `embed:""`

	windowing `embed:""`

	Name   string `arg:"" help:"A service, for the states of its streams; or an operator that keeps tables or a state in memory, such as orders.catalogue or fraud.cards."`
	DryRun bool   `help:"Only compare, change nothing."`

	Deadline time.Duration `env:"FEIRA_DEADLINE" default:"5m" help:"That of the services that run: an operator is rebuilt with their settings."`
	Hold     time.Duration `env:"FEIRA_HOLD" default:"15m" help:"That of the services that run."`
}

// Help explains both kinds.
func (*rebuildCmd) Help() string {
	return "Of a service, the kept state of every stream is computed anew from its events, a hundred streams in a transaction. Of an operator, the tables that it keeps are made anew beside the running one: its handler applies all events again, from the topics or, where a topic no longer has them, from the store of the topic's owner, to copies of the tables. Then, in one transaction, the running operator waits, the copies are brought to where it stands and compared, and what differs is replaced. The state of a stream operator is made anew and replaced likewise; what it appended is compared, and never appended again. Whenever a rebuild is ended before that, nothing has changed."
}

// Run rebuilds.
func (c *rebuildCmd) Run(ctx context.Context) error {
	name, _, ofOperator := strings.Cut(c.Name, ".")
	judges, err := c.config()
	if err != nil {
		return err
	}
	counts, err := c.analytics()
	if err != nil {
		return err
	}
	picked, err := shop.Select(shop.Services(shop.Config{Deadline: c.Deadline, Hold: c.Hold, Fraud: judges, Analytics: counts}), name)
	if err != nil {
		return err
	}
	if !ofOperator {
		return c.states(ctx, picked[0])
	}
	for _, o := range picked[0].Operators {
		if o.Name == c.Name {
			return c.operator(ctx, picked[0], o)
		}
	}
	return fmt.Errorf("there is no operator %q; feira admin operators lists them", c.Name)
}

// states computes those of a service's streams.
func (c *rebuildCmd) states(ctx context.Context, d service.Definition) error {
	pool, err := c.open(ctx, d.Name)
	if err != nil {
		return err
	}
	defer pool.Close()
	store := eventstore.New(pool, eventstore.Options{Service: d.Name, Registry: d.Registry()})
	done, err := d.Rebuild(ctx, store, c.DryRun, func(r service.Rebuilt) {
		if term.IsTerminal(int(os.Stderr.Fd())) {
			fmt.Fprintf(os.Stderr, "\r%d streams, %d differ\r", r.Streams, r.Changed)
		}
	})
	if err != nil {
		return err
	}
	fmt.Printf("%d streams examined, %d states differed", done.Streams, done.Changed)
	if c.DryRun {
		fmt.Print("; nothing was written")
	}
	fmt.Println()
	return nil
}

// operator rebuilds the tables of one.
func (c *rebuildCmd) operator(ctx context.Context, d service.Definition, def operator.Definition) error {
	pool, err := c.open(ctx, d.Name)
	if err != nil {
		return err
	}
	defer pool.Close()
	client, err := kafka.NewClient(c.kafka("feira-admin"))
	if err != nil {
		return fmt.Errorf("read the topics again: %w", err)
	}
	defer client.Close()
	var closing []func()
	defer func() {
		for _, done := range closing {
			done()
		}
	}()
	done, err := operator.Rebuild(ctx, def, operator.RebuildOptions{
		Pool: pool, Registry: d.Registry(), Client: client, Who: c.who(), DryRun: c.DryRun,
		Progress: rebuildProgress(c.Name),
		Owner: func(ctx context.Context, t events.Topic) (operator.Owner, error) {
			o, done, err := c.owner(ctx, t)
			if err == nil {
				closing = append(closing, done)
			}
			return o, err
		},
	})
	if err != nil {
		return err
	}
	return c.report(done)
}

// progressEvery is how often progress is told where there is no terminal.
const progressEvery = 5 * time.Second

// rebuildProgress tells how far a rebuild has come: in place on a terminal, else in a line now and then.
func rebuildProgress(name string) func(done, of int64) {
	began, told := time.Now(), time.Now()
	terminal := term.IsTerminal(int(os.Stderr.Fd()))
	return func(done, of int64) {
		if of == 0 || !terminal && time.Since(told) < progressEvery {
			return
		}
		told = time.Now()
		text := fmt.Sprintf("%s: %d of %d records, %d %%, %.0f/s", name, done, of, 100*done/of, float64(done)/time.Since(began).Seconds())
		if terminal {
			fmt.Fprintf(os.Stderr, "\r\x1b[K%s\r", text)
			return
		}
		fmt.Fprintln(os.Stderr, text)
	}
}

func tellDifferences(tables []operator.TableDifference) {
	for _, t := range tables {
		fmt.Printf("%s: %s, %d missing, %d excess, %d different\n", t.Table, plural(t.Rows, "row"), t.Missing, t.Excess, t.Different)
		for _, e := range t.Examples {
			fmt.Println("  a row " + printable(e))
		}
	}
}

func (c *rebuildCmd) report(done operator.Rebuilt) error {
	fmt.Printf("%s applied again, %d of them from the store of the topic's owner; %d left out, as they are parked or discarded\n",
		plural(done.Records, "record"), done.Stored, done.LeftOut)
	if done.Unread > 0 {
		fmt.Printf("%s cannot be read and are not parked: left out as well\n", plural(done.Unread, "record"))
	}
	tellDifferences(done.Tables)
	if o := done.Outputs; o != nil {
		fmt.Printf("%s that the operator appended were compared, none is written again: %d missing, %d different\n", plural(o.Rows, "event"), o.Missing, o.Different)
		for _, e := range o.Examples {
			fmt.Println("  one " + printable(e))
		}
		if o.Missing+o.Different > 0 {
			fmt.Printf("if that surprises: was the rebuild given the settings of the services that run (--deadline, here %s)?\n", c.Deadline)
		}
	}
	switch {
	case c.DryRun:
		fmt.Println("nothing was changed")
	case done.Same():
		fmt.Println("there was nothing to replace")
	default:
		fmt.Printf("replaced in one transaction; %s waited %s for it and goes on\n", c.Name, done.WaitedFor.Round(time.Millisecond))
	}
	return nil
}
