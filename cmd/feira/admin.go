package main

import (
	"context"
	"fmt"
	"os"
	"os/user"
	"strconv"
	"strings"
	"text/tabwriter"
	"unicode"
	"unicode/utf8"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/feira-shop/feira/internal/shop"
	"github.com/feira-shop/feira/shared/operator"
	"github.com/feira-shop/feira/shared/pg"
)

type adminCmd struct {
	Operators operatorsCmd  `cmd:"" help:"Operators with lag and state."`
	Pause     pauseCmd      `cmd:"" help:"Have an operator take nothing more, or all operators and jobs of a service."`
	Resume    resumeCmd     `cmd:"" help:"Have it go on exactly where it was, also after a named stop whose cause was mended."`
	Parked    parkedCmd     `cmd:"" help:"Records that could not be applied."`
	Late      lateCmd       `cmd:"" help:"Events that came too late for an operator to be counted, or whose time cannot be true, and by how much."`
	Rebuild   rebuildCmd    `cmd:"" help:"Make the states of a service's streams, or the tables of an operator, anew from the events."`
	AcceptGap acceptGapCmd  `cmd:"" help:"Go on behind a hole in a partition, without the events that are missing."`
	FillGap   fillGapCmd    `cmd:"" help:"Fill a hole in a partition with the events of their owner's store."`
	Republish republishCmd  `cmd:"" help:"Publish a stopped service's store to its topic from the first event, after the topic was lost."`
	Recover   recoverCmd    `cmd:"" help:"Copy events that a stopped service's store lost back from its topic, after an old backup was restored."`
	Fraud     adminFraudCmd `cmd:"" help:"What fraud learns from."`
	Audit     auditCmd      `cmd:"" help:"What was done to an operator by hand, by whom and when."`
	Parts     partsCmd      `cmd:"" help:"The parts of a service's table of events, and what is archived."`
	Archive   archiveCmd    `cmd:"" help:"Move the oldest parts of a service's table of events into files."`
	Unarchive unarchiveCmd  `cmd:"" help:"Bring an archived part back, the latest first."`
}

// admin is what the commands have in common.
type admin struct {
	databases `embed:""`

	Who string `env:"FEIRA_WHO" placeholder:"NAME" help:"Who does it, for the audit (default: the user's name)."`
}

func (a admin) who() string {
	if a.Who != "" {
		return a.Who
	}
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return "unknown"
}

// open connects to the database of a service.
func (a admin) open(ctx context.Context, service string) (*pgxpool.Pool, error) {
	if _, err := shop.Select(shop.Services(shop.Config{}), service); err != nil {
		return nil, err
	}
	dsn, err := a.dsn(service)
	if err != nil {
		return nil, err
	}
	return pg.Open(ctx, dsn, pg.PoolOptions{Name: "feira-admin", MaxConns: 2})
}

// of opens the database that an operator keeps its checkpoints in: its name begins with the service's.
func (a admin) of(ctx context.Context, operatorName string) (*pgxpool.Pool, error) {
	service, _, ok := strings.Cut(operatorName, ".")
	if !ok {
		return nil, fmt.Errorf("%q is no operator: operators are named service.what; feira admin operators lists them", operatorName)
	}
	return a.open(ctx, service)
}

// place reads topic/partition/offset.
func place(s string) (*operator.Place, error) {
	var p operator.Place
	parts := strings.Split(s, "/")
	if len(parts) == 3 {
		p.Topic = parts[0]
		if _, err := fmt.Sscanf(parts[1]+" "+parts[2], "%d %d", &p.Partition, &p.Offset); err == nil {
			return &p, nil
		}
	}
	return nil, fmt.Errorf("%q is not topic/partition/offset, such as orders/3/1042", s)
}

// printable keeps what came from a topic from steering the terminal: it may be anything.
func printable(s string) string {
	if utf8.ValidString(s) && strings.IndexFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) < 0 {
		return s
	}
	return strconv.Quote(s)
}

// table writes aligned columns.
func table(rows [][]string) error {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	for _, r := range rows {
		if _, err := fmt.Fprintln(w, strings.Join(r, "\t")); err != nil {
			return err
		}
	}
	return w.Flush()
}
