package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/term"

	"github.com/feira-shop/feira/internal/shop"
	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/eventstore"
	"github.com/feira-shop/feira/shared/eventstore/archive"
)

type partsCmd struct {
	admin `embed:""`

	Service string `arg:"" help:"The service."`
}

// Run lists the parts of a service's table of events.
func (c *partsCmd) Run(ctx context.Context) error {
	pool, err := c.open(ctx, c.Service)
	if err != nil {
		return err
	}
	defer pool.Close()
	parts, err := eventstore.New(pool, eventstore.Options{Service: c.Service}).Parts(ctx)
	if err != nil {
		return err
	}
	return table(partRows(parts))
}

func partRows(parts []eventstore.Part) [][]string {
	rows := [][]string{{"POSITIONS", "EVENTS", "SIZE", "FROM", "TO", "STATE", "FILE"}}
	for _, p := range parts {
		state := "attached"
		if p.Archived() {
			state = "archived"
			if p.Attached {
				state = "being archived"
			}
		}
		rows = append(rows, []string{
			fmt.Sprintf("%d–%d", p.Low, p.High-1), fmt.Sprint(p.Events), fmt.Sprintf("%.1f MB", float64(p.Bytes)/1e6), moment(p.First), moment(p.Last), state, p.File,
		})
	}
	return rows
}

func moment(t *time.Time) string {
	if t == nil {
		return "-"
	}
	return t.UTC().Format(time.RFC3339)
}

type archiveCmd struct {
	admin `embed:""`

	Service   string        `arg:"" help:"The service."`
	To        string        `required:"" type:"existingdir" placeholder:"DIR" help:"Folder for the files."`
	Before    int64         `xor:"which" required:"" placeholder:"POSITION" help:"Parts that are wholly before this position."`
	OlderThan time.Duration `xor:"which" required:"" placeholder:"DURATION" help:"Parts whose last event is older, such as 8760h."`
	Quiet     time.Duration `default:"2160h" help:"A part is archived when no stream with events in it was written to for so long: such a stream has ended."`
	Cut       bool          `help:"Also parts of streams that are still written to: their states stay, their histories need the file."`
	DryRun    bool          `help:"Only say what would be done."`
	Yes       bool          `help:"Do not ask."`
}

// Run archives parts.
func (c *archiveCmd) Run(ctx context.Context) error {
	if c.Before < 0 || c.OlderThan < 0 || c.Quiet <= 0 {
		return errors.New("positions and durations are above 0")
	}
	pool, err := c.open(ctx, c.Service)
	if err != nil {
		return err
	}
	defer pool.Close()
	o := archive.Options{
		Service: c.Service, Dir: c.To, Before: c.Before, OlderThan: c.OlderThan, Quiet: c.Quiet, Cut: c.Cut, Who: c.who(), DryRun: true, Progress: progress,
	}
	if o.DSN, err = c.dsn(c.Service); err != nil {
		return err
	}
	if o.Published, err = published(ctx, pool, c.Service); err != nil {
		return err
	}
	store := eventstore.New(pool, eventstore.Options{Service: c.Service})
	planned, refused := archive.Run(ctx, store, o)
	if len(planned) > 0 {
		if err := table(partRows(planned)); err != nil {
			return err
		}
	}
	what := fmt.Sprintf("%s of %s would be archived", plural(len(planned), "part"), c.Service)
	if c.DryRun || len(planned) == 0 {
		fmt.Println(what)
		return refused
	}
	if err := confirm(ctx, what, c.Yes); err != nil {
		return err
	}
	o.DryRun = false
	done, err := archive.Run(ctx, store, o)
	for _, p := range done {
		fmt.Printf("archived positions %d to %d: %d events, %s\n", p.Low, p.High-1, p.Events, p.File)
	}
	return err
}

// published is the position up to which the relay has published.
func published(ctx context.Context, pool *pgxpool.Pool, service string) (int64, error) {
	picked, err := shop.Select(shop.Services(shop.Config{}), service)
	if err != nil {
		return 0, err
	}
	topic := picked[0].Publishes
	if topic == (events.Topic{}) {
		return math.MaxInt64, nil
	}
	var position int64
	err = pool.QueryRow(ctx, "select position from relay_cursor where topic = $1", topic.Name).Scan(&position)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return 0, fmt.Errorf("read how far %s is published: %w", service, err)
	}
	return position, nil
}

type unarchiveCmd struct {
	admin `embed:""`

	File string `arg:"" type:"existingfile" help:"The archive."`
}

// Run brings a part back.
func (c *unarchiveCmd) Run(ctx context.Context) error {
	h, err := archive.Read(c.File)
	if err != nil {
		return err
	}
	if _, err := shop.Select(shop.Services(shop.Config{}), h.Service); err != nil {
		return err
	}
	dsn, err := c.dsn(h.Service)
	if err != nil {
		return err
	}
	p, err := archive.Restore(ctx, dsn, c.File, c.who())
	if err == nil {
		fmt.Printf("%s: positions %d to %d can be read again, %d events\n", h.Service, p.Low, p.High-1, p.Events)
	}
	return err
}

// progress says on a terminal what is being done.
func progress(what string) {
	if term.IsTerminal(int(os.Stderr.Fd())) {
		fmt.Fprintln(os.Stderr, what)
	}
}
