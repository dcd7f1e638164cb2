package oracle

import (
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/feira-shop/feira/shared/money"
)

// shown is how many differences or open orders are listed; the rest is counted.
const shown = 50

// Print writes a report for people.
func Print(w io.Writer, r Report) {
	_, _ = fmt.Fprintf(w, "verify: %d orders, %d events\n", r.Orders, r.Events)
	for _, status := range slices.Sorted(maps.Keys(r.Totals.ByStatus)) {
		_, _ = fmt.Fprintf(w, "  %-34s %6d\n", status, r.Totals.ByStatus[status])
	}
	for _, reason := range slices.Sorted(maps.Keys(r.Totals.ByReason)) {
		_, _ = fmt.Fprintf(w, "    %-32s %6d\n", reason, r.Totals.ByReason[reason])
	}
	_, _ = fmt.Fprintf(w, "  held %d, released %d; captured %s, of which refunded %s\n",
		r.Totals.Held, r.Totals.Released, money.BRL(r.Totals.Captured), money.BRL(r.Totals.Refunded))
	list(w, "without an end yet", r.Open)
	list(w, "note", r.Notes)
	list(w, "DIFFERENCE", r.Differences)
	if r.Clean() {
		_, _ = fmt.Fprintln(w, "verify: no difference")
	}
}

func list(w io.Writer, what string, items []string) {
	for i, item := range items {
		if i == shown {
			_, _ = fmt.Fprintf(w, "%s: and %d more\n", what, len(items)-shown)
			return
		}
		_, _ = fmt.Fprintf(w, "%s: %s\n", what, item)
	}
}
