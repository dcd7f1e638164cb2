package analytics

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"time"

	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/eventstore"
	"github.com/feira-shop/feira/shared/operator"
	"github.com/feira-shop/feira/shared/stream"
)

//go:embed sql/keep_top.sql
var keepTopSQL string

const (
	topName = "analytics.top"
	// everything is the one key of the windows of top products: a rank needs all products side by side.
	everything = "products"
)

// ProductsRanked says which products sold most in a window of time. It is private: the catalogue's own readers ask by REST.
type ProductsRanked struct {
	WindowStart time.Time `json:"window_start"` // included
	WindowEnd   time.Time `json:"window_end"`   // not included
	Products    []Product `json:"products"`     // best first
	Revision    int       `json:"revision"`     // 1 when the window closes
}

// EventType is the event's CloudEvents type.
func (ProductsRanked) EventType() string { return "shop.feira.analytics.products.ranked.v1" }

// EventKey is empty: the event is never on Kafka.
func (ProductsRanked) EventKey() string { return "" }

// TopStream is the stream of one window's ranking, whose versions are its revisions.
func TopStream(start time.Time) string { return "top-" + start.UTC().Format(streamTime) }

// topTotal adds up what was sold.
var topTotal = stream.Aggregation[Sales]{
	Lift:   func(r events.Recorded, _ string) Sales { return SalesOf(r) },
	Merge:  Sales.Add,
	Event:  ranked,
	Stream: func(r stream.Result[Sales]) string { return TopStream(r.Window.Start) },
	Keep:   keepTop,
}

func (c Config) topWindows() stream.Windows {
	c = c.WithDefaults()
	return stream.Sliding(c.Top(), c.Window).Lateness(c.Lateness)
}

func top(cfg Config) operator.Definition {
	return stream.From(events.Orders, events.OrderConfirmed{}).
		KeyBy(func(events.Recorded) string { return everything }).
		Disorder(cfg.Disorder).
		Window(cfg.topWindows()).
		Aggregate(topName, topTotal)
}

func ranked(r stream.Result[Sales]) events.Event {
	return ProductsRanked{WindowStart: r.Window.Start, WindowEnd: r.Window.End, Products: r.Value.Top(), Revision: r.Revision}
}

// keepTop writes rankings as the read model has them.
func keepTop(tx *eventstore.Tx, closed []stream.Result[Sales]) error {
	var starts, ends []time.Time
	var products []string
	var revisions []int
	for _, r := range closed {
		list, err := json.Marshal(r.Value.Top())
		if err != nil {
			return fmt.Errorf("encode the top products of %s: %w", r.Window.Start, err)
		}
		starts, ends = append(starts, r.Window.Start), append(ends, r.Window.End)
		products, revisions = append(products, string(list)), append(revisions, r.Revision)
	}
	tx.Later(keepTopSQL, starts, ends, products, revisions)
	return nil
}
