package relay

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/feira-shop/feira/shared/events"
)

// What is done at each round must not slow down as the store grows.
func TestRoundsReadByPosition(t *testing.T) {
	t.Parallel()
	e := newEnv(t, events.Orders)
	e.append(placed, keys(5000)...)
	e.exec("analyze events")
	for name, query := range map[string]struct {
		sql  string
		args []any
	}{
		"read":    {readSQL, []any{4000, maxEvents, maxBytes}},
		"backlog": {backlogSQL, []any{4000}},
		"missing": {missingSQL, []any{[]int64{1, 2}, []string{"a", "b"}}},
	} {
		rows, err := e.db.Pool.Query(t.Context(), "explain "+query.sql, query.args...)
		if err != nil {
			t.Fatal(err)
		}
		lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			t.Fatal(err)
		}
		plan := strings.Join(lines, "\n")
		if !strings.Contains(plan, "events_pkey") || strings.Contains(plan, "Seq Scan on events") || name == "read" && strings.Contains(plan, "Sort") {
			t.Errorf("%s:\n%s", name, plan)
		}
	}
}
