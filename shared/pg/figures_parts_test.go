package pg

import "testing"

// The parts of a table have the figures of the table, together.
func TestPartsCountAsTheirTable(t *testing.T) {
	t.Parallel()
	_, dsn := database(t, "figures_parts")
	pool := openPool(t, dsn, PoolOptions{Name: "figures", MaxConns: 2})
	for _, sql := range []string{
		"create table things (n int) partition by range (n)",
		"create table things_1 partition of things for values from (1) to (601)",
		"create table things_601 partition of things for values from (601) to (2000)",
		"insert into things select generate_series(1, 1000)", "analyze things_1", "analyze things_601",
	} {
		if _, err := pool.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	f := NewFigures(pool)
	if err := f.ask(); err != nil || len(f.tables) != 1 || f.tables[0] != (tableFigures{Name: "things", Live: 1000}) {
		t.Errorf("figures of tables: %+v, %v", f.tables, err)
	}
}
