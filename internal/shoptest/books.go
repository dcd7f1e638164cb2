package shoptest

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/feira-shop/feira/internal/oracle"
	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/eventstore"
	"github.com/feira-shop/feira/shared/pg"
	"github.com/feira-shop/feira/sim/provider"
)

// Examine lets the oracle recompute every table; settle is how long orders may take to come to an end, and passes how
// often a difference must be seen in a row to count.
func (s *Shop) Examine(ctx context.Context, settle time.Duration, passes int) (oracle.Report, error) {
	return oracle.Examine(ctx, oracle.Config{
		Services: s.Services, DSN: s.DSN, Settle: settle, Passes: passes, Pause: s.pause, Analytics: Windows, Kafka: s.Kafka,
	})
}

// patientPasses is for a shop that may be busy on a loaded machine: what is only on its way must not count.
const patientPasses = 100

// examineWithin bounds an examination; ten thousand orders on a busy machine take minutes.
const examineWithin = 10 * time.Minute

// mustBalance fails the test unless every order came to an end and every table is as the event stores say. In a test that
// has failed already it waits for no order.
func (s *Shop) mustBalance(tb testing.TB) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), examineWithin)
	defer cancel()
	settle := patience
	if tb.Failed() {
		settle = 0
	}
	report, err := s.Examine(ctx, settle, patientPasses)
	if err != nil {
		tb.Errorf("examine the shop: %v; seen so far: %q", err, report.Differences[:min(10, len(report.Differences))])
		return
	}
	if len(report.Open) > 0 || !report.Clean() {
		var text strings.Builder
		oracle.Print(&text, report)
		for _, order := range report.Open[:min(3, len(report.Open))] {
			s.Tell(ctx, &text, order)
		}
		tb.Errorf("the books do not balance:\n%s", text.String())
	}
}

// Tell writes all that the services recorded about an order.
func (s *Shop) Tell(ctx context.Context, w io.Writer, order string) {
	for _, d := range s.Services {
		rows, err := s.Pool(d.Name).Query(ctx, `select stream, version, recorded_at, type, data::text from events
			where data ->> 'order' = $1 order by position`, order)
		if err != nil {
			_, _ = fmt.Fprintf(w, "%s: %v\n", d.Name, err)
			continue
		}
		var stream, kind, data string
		var version int64
		var at time.Time
		_, err = pgx.ForEachRow(rows, []any{&stream, &version, &at, &kind, &data}, func() error {
			_, err := fmt.Fprintf(w, "%s %s %s %d %s %s\n", at.Format("15:04:05.000"), d.Name, stream, version, kind, data)
			return err
		})
		if err != nil {
			_, _ = fmt.Fprintf(w, "%s: %v\n", d.Name, err)
		}
	}
}

// Ledger reads what the provider's books say of the payments of an order.
func (s *Shop) Ledger(tb testing.TB, payment string) []provider.Authorization {
	tb.Helper()
	var found []provider.Authorization
	err := provider.Ledger(tb.Context(), s.Pool(Provider), func(a provider.Authorization) error {
		if a.Reference == payment {
			found = append(found, a)
		}
		return nil
	})
	must(tb, "read the provider's ledger", err)
	return found
}

// Events reads what a service recorded, in order.
func (s *Shop) Events(tb testing.TB, name string) []events.Recorded {
	tb.Helper()
	var all []events.Recorded
	for _, d := range s.Services {
		if d.Name != name {
			continue
		}
		store := eventstore.New(s.Pool(name), eventstore.Options{Service: name, Registry: d.Registry()})
		must(tb, "read the events of "+name, store.Each(tb.Context(), 0, func(r events.Recorded) error {
			all = append(all, r)
			return nil
		}))
	}
	return all
}

func migrateProvider(ctx context.Context, dsn string) error {
	return pg.Migrate(ctx, dsn, provider.Migrations())
}
