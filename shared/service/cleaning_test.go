package service

import (
	"log/slog"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
)

// What is too old goes, in batches; what is younger, unfinished, needed by a rebuild, parked or of an operator that is
// there stays.
func TestWhatIsTooOldIsDeleted(t *testing.T) {
	t.Parallel()
	d := definition()
	g := newGround(t, d)
	exec := func(sql string, args ...any) {
		t.Helper()
		if _, err := g.db.Pool.Exec(t.Context(), sql, args...); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
	exec(`insert into operator_audit (at, operator, action, who)
		select now() - make_interval(days => 401), 'loyalty.mirror', a, 'ana' from generate_series(1, 1200) n, unnest(array['pause', 'replayed']) a`)
	exec(`insert into operator_audit (at, operator, action, who)
		select now() - make_interval(days => age), 'loyalty.mirror', a, 'ana' from (values (399, 'pause'), (401, 'discarded'), (401, 'accept-gap')) v(age, a)`)
	exec(`insert into operator_requests (operator, topic, partition, action, requested_by, requested_at, finished_at)
		select 'loyalty.mirror', 't', 0, 'replay', 'ana', now() - make_interval(days => 100), now() - make_interval(days => age)
		from unnest(array[29, 31, null]::int[]) age`)
	for _, name := range []string{"loyalty.mirror", "loyalty.gone", "loyalty.parks", "loyalty.young", "loyalty.moves"} {
		age := 401
		if name == "loyalty.young" {
			age = 399
		}
		exec(`insert into checkpoints (operator, topic, partition, next_offset, source_position, adopt, epoch, topic_id, updated_at)
			select $1, 'loyalty', p, 0, 0, false, 0, '', now() - make_interval(days => $2) from generate_series(0, 2) p`, name, age)
		exec("insert into stream_deltas (operator, topic, partition, expires_at, entries) select $1, 'loyalty', 0, 0, '{}' from generate_series(1, 1500)", name)
		exec("insert into stream_watermarks values ($1, 'loyalty', 0, 0, 0)", name)
		exec("insert into operator_control (operator, paused, changed_by) values ($1, true, 'ana')", name)
	}
	exec("update checkpoints set updated_at = now() where operator = 'loyalty.moves' and partition = 2")
	exec(`insert into parked (operator, topic, partition, "offset", headers, timestamped, event_id, type, reason, error, attempts)
		values ('loyalty.parks', 'loyalty', 0, 1, '[]', now(), '', '', '', '', 1)`)

	c := newCleaner(g.db.Pool, d, Config{Log: slog.New(slog.DiscardHandler)})
	for range 2 { // the second finds nothing
		if err := c.clean(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for sql, want := range map[string]int{
		"select count(*) from operator_audit":                          3,
		"select count(*) from operator_requests":                       2,
		"select count(distinct operator) from checkpoints":             4,
		"select count(*) from checkpoints":                             12,
		"select count(*) from stream_deltas":                           4 * 1500,
		"select count(*) from stream_watermarks":                       4,
		"select count(*) from operator_control":                        4,
		"select count(*) from parked":                                  1,
		"select count(*) from checkpoints where operator like '%gone'": 0,
	} {
		if n := g.count(sql); n != want {
			t.Errorf("%s: %d, want %d", sql, n, want)
		}
	}
	for what, want := range map[string]float64{cleanedAudit: 2400, cleanedRequests: 1, cleanedOperators: 1503} {
		var m dto.Metric
		if err := c.rows.WithLabelValues(what).Write(&m); err != nil || m.GetCounter().GetValue() != want {
			t.Errorf("%v rows of %s are counted, want %v: %v", m.GetCounter().GetValue(), what, want, err)
		}
	}
	if k := (Keep{Audit: time.Hour}).withDefaults(); k != (Keep{Audit: time.Hour, Requests: 30 * 24 * time.Hour, Gone: 400 * 24 * time.Hour}) {
		t.Errorf("defaults: %+v", k)
	}
}
