package operator

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// TableDifference is what a rebuild found in one table of the running operator.
type TableDifference struct {
	Table     string
	Rows      int64    // as they must be
	Missing   int64    // rows that are not there
	Excess    int64    // rows that must not be there
	Different int64    // rows with other content
	Examples  []string // keys of some of them, with what is wrong
}

// table is one that a handler keeps.
type table struct {
	schema, name string
	key          []string // columns of the primary key
	columns      []string // all that are neither generated nor an identity
}

func (t table) quoted() string { return pgx.Identifier{t.name}.Sanitize() }

// here is the running operator's table.
func (t table) here() string { return pgx.Identifier{t.schema, t.name}.Sanitize() }

// list names columns of an alias.
func list(alias string, columns []string) string {
	quoted := make([]string, len(columns))
	for i, c := range columns {
		quoted[i] = pgx.Identifier{alias, c}.Sanitize()
		if alias == "" {
			quoted[i] = pgx.Identifier{c}.Sanitize()
		}
	}
	return strings.Join(quoted, ", ")
}

// describe looks the tables up. Each must have a primary key that does not depend on when a row was written.
func describe(ctx context.Context, session *pgxpool.Conn, def Definition) ([]table, error) {
	tables := make([]table, 0, len(def.Tables))
	for _, name := range slices.Sorted(slices.Values(def.Tables)) { // they are locked in this order
		t := table{name: name}
		var drawn []string
		err := session.QueryRow(ctx, `
			select n.nspname,
			       array(select a.attname::text from pg_index i join pg_attribute a on a.attrelid = c.oid and a.attnum = any (i.indkey)
			             where i.indrelid = c.oid and i.indisprimary order by array_position(i.indkey::int2[], a.attnum)),
			       array(select a.attname::text from pg_attribute a where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
			               and a.attgenerated = '' and a.attidentity = '' order by a.attnum),
			       array(select a.attname::text from pg_attribute a left join pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
			             where a.attrelid = c.oid and (a.attidentity <> '' or pg_get_expr(d.adbin, d.adrelid) like 'nextval(%'))
			from pg_class c join pg_namespace n on n.oid = c.relnamespace
			where c.oid = to_regclass($1)`, pgx.Identifier{name}.Sanitize()).Scan(&t.schema, &t.key, &t.columns, &drawn)
		if err != nil {
			return nil, fmt.Errorf("look at the table %s: %w", name, err)
		}
		if len(t.key) == 0 || slices.ContainsFunc(t.key, func(c string) bool { return slices.Contains(drawn, c) }) {
			return nil, &NotRebuildableError{
				Operator: def.Name, Why: "the table " + name + " has no primary key, or one that is drawn as rows come, so old and new rows cannot be compared",
				Instead: "give it a key of what its rows are about",
			}
		}
		tables = append(tables, t)
	}
	return tables, nil
}

// examples is how many differing rows are named.
const examples = 5

// compare holds the old table o against the new one n.
func (t table) compare(ctx context.Context, tx pgx.Tx, schema string) (TableDifference, error) {
	d := TableDifference{Table: t.name}
	o, n := "row("+list("o", t.columns)+")::text", "row("+list("n", t.columns)+")::text"
	missing, excess := "("+list("o", t.key[:1])+" is null)", "("+list("n", t.key[:1])+" is null)"
	joined := fmt.Sprintf("%s o full join %s n using (%s)", t.here(), pgx.Identifier{schema, t.name}.Sanitize(), list("", t.key))
	err := tx.QueryRow(ctx, fmt.Sprintf(`select count(*) filter (where not %[2]s), count(*) filter (where %[1]s),
		count(*) filter (where %[2]s), count(*) filter (where not %[1]s and not %[2]s and %[3]s <> %[4]s) from %[5]s`,
		missing, excess, o, n, joined)).Scan(&d.Rows, &d.Missing, &d.Excess, &d.Different)
	if err != nil {
		return d, fmt.Errorf("compare the table %s: %w", t.name, err)
	}
	rows, err := tx.Query(ctx, fmt.Sprintf(`select case when %[1]s then 'is missing: ' || %[4]s when %[2]s then 'must not be there: ' || %[3]s
		else 'is ' || %[3]s || ', must be ' || %[4]s end from %[5]s
		where %[1]s or %[2]s or %[3]s <> %[4]s order by %[6]s limit %[7]d`, missing, excess, o, n, joined, list("", t.key), examples))
	if err != nil {
		return d, fmt.Errorf("compare the table %s: %w", t.name, err)
	}
	d.Examples, err = pgx.CollectRows(rows, pgx.RowTo[string])
	return d, err
}

// replace makes the old table's content that of the new one, and touches no row that is as it must be.
func (t table) replace(ctx context.Context, tx pgx.Tx, schema string) error {
	made := pgx.Identifier{schema, t.name}.Sanitize()
	same := make([]string, len(t.key))
	for i, c := range t.key {
		same[i] = list("o", []string{c}) + " = " + list("n", []string{c})
	}
	key := strings.Join(same, " and ")
	for _, sql := range []string{
		fmt.Sprintf("delete from %s o where not exists (select from %s n where %s and row(%s)::text = row(%s)::text)",
			t.here(), made, key, list("n", t.columns), list("o", t.columns)),
		fmt.Sprintf("insert into %s (%s) select %s from %s n where not exists (select from %s o where %s)",
			t.here(), list("", t.columns), list("n", t.columns), made, t.here(), key),
	} {
		if _, err := tx.Exec(ctx, sql); err != nil {
			return fmt.Errorf("replace what differs in the table %s: %w", t.name, err)
		}
	}
	return nil
}
