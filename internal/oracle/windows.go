package oracle

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/feira-shop/feira/services/analytics"
	"github.com/feira-shop/feira/shared/events"
)

// The operators whose windows are computed anew.
const (
	spendOperator = "analytics.spend"
	topOperator   = "analytics.top"
)

// spendWindow is a window of an account in a currency.
type spendWindow struct {
	account, currency string
	start             time.Time
}

func (w spendWindow) String() string {
	return w.start.Format(time.RFC3339) + " of " + w.account + " in " + w.currency
}

// windows are what analytics should have counted, by the plainest computation there is, and what it said.
type windows struct {
	cfg      analytics.Config
	late     map[string]map[string]bool // operator → ids that count in no window
	received map[string]int64           // operator → events that it should have met
	spend    map[spendWindow]analytics.Spend
	top      map[time.Time]analytics.Sales // by the windows' beginnings
	minutes  map[time.Time]int64           // orders placed
	spent    map[spendWindow]events.AccountSpendClosed
	ranked   map[time.Time]analytics.ProductsRanked
}

func newWindows(cfg analytics.Config) *windows {
	return &windows{
		cfg: cfg.WithDefaults(), late: map[string]map[string]bool{}, received: map[string]int64{}, spend: map[spendWindow]analytics.Spend{},
		top: map[time.Time]analytics.Sales{}, minutes: map[time.Time]int64{},
		spent: map[spendWindow]events.AccountSpendClosed{}, ranked: map[time.Time]analytics.ProductsRanked{},
	}
}

// start is the beginning of the newest window that a time is in: windows are aligned to 1970.
func (w *windows) start(at time.Time) time.Time {
	return at.Add(-time.Duration(at.UnixMicro()%w.cfg.Window.Microseconds()) * time.Microsecond).Truncate(time.Second).UTC()
}

// payment adds what moves money to the window of its time.
func (w *windows) payment(r events.Recorded) {
	account, currency, s, ok := analytics.SpendOf(r)
	if !ok {
		return
	}
	w.received[spendOperator]++
	if w.late[spendOperator][r.ID] {
		return
	}
	at := spendWindow{account, currency, w.start(r.Time)}
	w.spend[at] = w.spend[at].Add(s)
}

// order adds a confirmed order to every window that its time is in, and one that is placed to its minute.
func (w *windows) order(r events.Recorded) {
	if e, ok := r.Event.(events.OrderPlaced); ok {
		w.minutes[e.PlacedAt.UTC().Truncate(time.Minute)]++
	}
	sales := analytics.SalesOf(r)
	if sales == nil {
		return
	}
	w.received[topOperator]++
	if w.late[topOperator][r.ID] {
		return
	}
	for start := w.start(r.Time); start.After(r.Time.Add(-w.cfg.Top())); start = start.Add(-w.cfg.Window) {
		w.top[start] = w.top[start].Add(sales)
	}
}

// readAnalytics keeps the last revision of everything that was said.
func readAnalytics(b *books, r events.Recorded) {
	switch e := r.Event.(type) {
	case events.AccountSpendClosed:
		e.WindowStart, e.WindowEnd = e.WindowStart.UTC(), e.WindowEnd.UTC()
		b.windows.spent[spendWindow{e.Account, e.Currency, e.WindowStart}] = e
	case analytics.ProductsRanked:
		e.WindowStart, e.WindowEnd = e.WindowStart.UTC(), e.WindowEnd.UTC()
		b.windows.ranked[e.WindowStart] = e
	}
}

// readLate reads which events count nowhere. Each must be where the windows' own rules put it.
func (e *examiner) readLate(ctx context.Context, b *books) error {
	w := b.windows
	if e.pools["analytics"] == nil {
		return nil
	}
	rows, err := e.pools["analytics"].Query(ctx, "select operator, id, reason, event_time, watermark, coalesce(recorded_at, 0) from stream_late")
	if err != nil {
		return fmt.Errorf("verify late events: %w", err)
	}
	var operator, id, reason string
	var at, watermark, recorded int64
	_, err = pgx.ForEachRow(rows, []any{&operator, &id, &reason, &at, &watermark, &recorded}, func() error {
		if w.late[operator] == nil {
			w.late[operator] = map[string]bool{}
		}
		w.late[operator][id] = true
		closes := w.start(time.UnixMicro(at)).Add(w.cfg.Window + w.cfg.Lateness)
		inTime := closes.After(time.UnixMicro(watermark))
		possible := time.UnixMicro(at).Sub(time.UnixMicro(recorded)) <= skew
		if reason == "late" && inTime || reason == "quarantined" && possible {
			b.fault("analytics: %s has event %s as %s, and it was not", operator, id, reason)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("verify late events: %w", err)
	}
	return nil
}

// skew is how far an event's time may be after that of its recording.
const skew = time.Minute
