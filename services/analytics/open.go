package analytics

import (
	"context"
	"time"

	"github.com/feira-shop/feira/shared/operator"
	"github.com/feira-shop/feira/shared/stream"
)

// always is wider than any window.
var always = stream.Span{From: time.Unix(0, 0), To: endOfTime}

// OpenSpend reads what the open windows of accounts hold so far; keys are as [AccountOf] parts them.
func OpenSpend(ctx context.Context, q operator.Querier, cfg Config) ([]stream.Result[Spend], error) {
	return stream.OpenWindows(ctx, q, spendName, cfg.spendWindows(), spendTotal, always)
}

// OpenTop reads what the open windows of products hold so far.
func OpenTop(ctx context.Context, q operator.Querier, cfg Config) ([]stream.Result[Sales], error) {
	return stream.OpenWindows(ctx, q, topName, cfg.topWindows(), topTotal, always)
}
