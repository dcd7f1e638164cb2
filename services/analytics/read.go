package analytics

import (
	"context"
	_ "embed"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

var (
	//go:embed sql/list_clicks.sql
	listClicksSQL string
	//go:embed sql/list_conversion.sql
	listConversionSQL string
	//go:embed sql/list_spend.sql
	listSpendSQL string
	//go:embed sql/list_top.sql
	listTopSQL string
)

// querier is a pool or a transaction.
type querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// counted is a row of clicks_per_minute.
type counted struct {
	Cell
	Clicks int64
}

// clickPlace is a place in the list of clicks.
type clickPlace struct {
	Minute time.Time `json:"m"`
	Action string    `json:"a"`
}

// listClicks reads minutes of a period, of one action or all (""), after a place, and how many there are in all; the zero period is
// all of time.
func listClicks(ctx context.Context, q querier, action string, p period, after clickPlace, limit int) (rows []counted, total int64, err error) {
	const sumSQL = `select coalesce(sum(clicks), 0) from `
	if p == (period{}) {
		p = period{From: time.Unix(0, 0), To: endOfTime}
		err = q.QueryRow(ctx, sumSQL+`clicks_per_action where $1 = '' or action = $1`, action).Scan(&total)
	} else {
		err = q.QueryRow(ctx, sumSQL+`clicks_per_minute where minute >= $2 and minute < $3 and ($1 = '' or action = $1)`, action, p.From, p.To).Scan(&total)
	}
	if err != nil {
		return nil, 0, fmt.Errorf("add clicks up: %w", err)
	}
	found, err := q.Query(ctx, listClicksSQL, action, p.From, p.To, after.Minute, after.Action, limit)
	if err != nil {
		return nil, 0, fmt.Errorf("list clicks: %w", err)
	}
	rows, err = pgx.CollectRows(found, func(row pgx.CollectableRow) (c counted, err error) {
		return c, row.Scan(&c.Minute, &c.Action, &c.Clicks)
	})
	return rows, total, err
}

// endOfTime is after every click that [events.UserActed] takes.
var endOfTime = time.Date(5200, 1, 1, 0, 0, 0, 0, time.UTC)

// converted is one minute of clicks and orders.
type converted struct {
	Minute         time.Time
	Clicks, Orders int64
}

func listConversion(ctx context.Context, q querier, action string, p period, after time.Time, limit int) ([]converted, error) {
	found, err := q.Query(ctx, listConversionSQL, action, p.From, p.To, after, limit)
	if err != nil {
		return nil, fmt.Errorf("list conversion: %w", err)
	}
	return pgx.CollectRows(found, pgx.RowToStructByPos[converted])
}

// spent is a window of an account, open or closed.
type spent struct {
	Account, Currency string
	Start, End        time.Time
	Spend
	Revision int // 0: it is open
}

// spentPlace is a place in the list of windows.
type spentPlace struct {
	Start    time.Time `json:"s"`
	Account  string    `json:"a"`
	Currency string    `json:"c"`
}

// listSpend reads windows that begin in a period, of one account or all (""). Closed ones come from the read model; what
// open ones hold so far is added up from their parts, as of the same moment.
func listSpend(ctx context.Context, q querier, length time.Duration, account string, p period, after spentPlace, limit int) ([]spent, error) {
	found, err := q.Query(ctx, listSpendSQL, spendName, account, p.From, p.To, after.Start, after.Account, after.Currency, limit, length.Microseconds())
	if err != nil {
		return nil, fmt.Errorf("list account spend: %w", err)
	}
	return pgx.CollectRows(found, func(row pgx.CollectableRow) (s spent, err error) {
		return s, row.Scan(&s.Account, &s.Currency, &s.Start, &s.End, &s.Payments, &s.Captured, &s.Refunds, &s.Refunded, &s.Revision)
	})
}
