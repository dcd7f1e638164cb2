package analytics

import (
	_ "embed"
	"strings"
	"time"

	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/eventstore"
	"github.com/feira-shop/feira/shared/money"
	"github.com/feira-shop/feira/shared/operator"
	"github.com/feira-shop/feira/shared/stream"
)

//go:embed sql/keep_spend.sql
var keepSpendSQL string

// spendName is the operator's; partial sums are kept under it.
const spendName = "analytics.spend"

// SpendStream is the stream of one window's result, whose versions are its revisions.
func SpendStream(account, currency string, start time.Time) string {
	return "spend-" + start.UTC().Format(streamTime) + "-" + currency + "-" + account
}

// streamTime is how streams of windows say when a window begins.
const streamTime = "20060102T150405Z"

// accountKey names account and currency as one; a currency has no blank in it.
func accountKey(account, currency string) string { return currency + " " + account }

// AccountOf parts the key of a window.
func AccountOf(key string) (account, currency string) {
	currency, account, _ = strings.Cut(key, " ")
	return account, currency
}

// spendTotal adds up what moves money.
var spendTotal = stream.Aggregation[Spend]{
	Lift: func(r events.Recorded, _ string) Spend {
		_, _, s, _ := SpendOf(r)
		return s
	},
	Merge: Spend.Add,
	Event: spendClosed,
	Stream: func(r stream.Result[Spend]) string {
		account, currency := AccountOf(r.Key)
		return SpendStream(account, currency, r.Window.Start)
	},
	Keep: keepSpend,
}

func (c Config) spendWindows() stream.Windows {
	c = c.WithDefaults()
	return stream.Tumbling(c.Window).Lateness(c.Lateness)
}

func spend(cfg Config) operator.Definition {
	return stream.From(events.Payments, events.PaymentCaptured{}, events.PaymentRefunded{}).
		KeyBy(func(r events.Recorded) string {
			account, currency, _, ok := SpendOf(r)
			if !ok {
				return ""
			}
			return accountKey(account, currency)
		}).
		Disorder(cfg.Disorder).
		Window(cfg.spendWindows()).
		Aggregate(spendName, spendTotal)
}

func spendClosed(r stream.Result[Spend]) events.Event {
	account, currency := AccountOf(r.Key)
	return events.AccountSpendClosed{
		Account: account, Currency: currency, WindowStart: r.Window.Start, WindowEnd: r.Window.End,
		Payments: r.Value.Payments, Captured: money.New(r.Value.Captured, currency),
		Refunds: r.Value.Refunds, Refunded: money.New(r.Value.Refunded, currency), Revision: r.Revision,
	}
}

// keepSpend writes results as the read model has them.
func keepSpend(tx *eventstore.Tx, closed []stream.Result[Spend]) error {
	var accounts, currencies []string
	var starts, ends []time.Time
	var payments, captured, refunds, refunded []int64
	var revisions []int
	for _, r := range closed {
		account, currency := AccountOf(r.Key)
		accounts, currencies = append(accounts, account), append(currencies, currency)
		starts, ends = append(starts, r.Window.Start), append(ends, r.Window.End)
		payments, captured = append(payments, r.Value.Payments), append(captured, r.Value.Captured)
		refunds, refunded = append(refunds, r.Value.Refunds), append(refunded, r.Value.Refunded)
		revisions = append(revisions, r.Revision)
	}
	tx.Later(keepSpendSQL, accounts, currencies, starts, ends, payments, captured, refunds, refunded, revisions)
	return nil
}
