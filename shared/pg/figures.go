package pg

import (
	"context"
	_ "embed"
	"errors"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
)

const (
	// figuresEvery is the least time between two questions to the server, however often the figures are read.
	figuresEvery = 10 * time.Second
	// figuresWithin bounds a question, the wait for a free connection included.
	figuresWithin = time.Second
	// figuresTables is how many tables may have figures.
	figuresTables = 100
)

var (
	//go:embed queries/database.sql
	databaseSQL string
	//go:embed queries/tables.sql
	tablesSQL string
)

// figure is one column of queries/database.sql.
type figure struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
}

func describe(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("feira_postgres_"+name, help, labels, nil)
}

var (
	databaseFigures = []figure{
		{describe("size_bytes", "Size of the database on disk."), prometheus.GaugeValue},
		{describe("connections", "Sessions of the database, of all clients."), prometheus.GaugeValue},
		{describe("commits_total", "Committed transactions of the database."), prometheus.CounterValue},
		{describe("rollbacks_total", "Transactions of the database that were rolled back."), prometheus.CounterValue},
		{describe("deadlocks_total", "Deadlocks that the server ended."), prometheus.CounterValue},
		{describe("blocks_hit_total", "Blocks found in the server's memory."), prometheus.CounterValue},
		{describe("blocks_read_total", "Blocks that had to be read from files."), prometheus.CounterValue},
		{describe("temporary_bytes_total", "Written to temporary files because memory did not suffice."), prometheus.CounterValue},
		{describe("oldest_transaction_seconds", "Age of the oldest open transaction that the login may see; 0 if there is none."), prometheus.GaugeValue},
		{describe("wal_bytes_total", "Write-ahead log of the whole server, all databases together."), prometheus.CounterValue},
		// The server's clock until it is held against this process's: the last column.
		{describe("clock_skew_seconds", "By how much the process's clock is ahead of the server's, to within half a second; below 0 it is behind."), prometheus.GaugeValue},
	}
	upDesc   = describe("up", "1 when the database gave its figures within a second, else 0 and there are no others.")
	liveDesc = describe("live_rows", "Rows of a table, as the server estimates them.", "table")
	deadDesc = describe("dead_rows", "Rows of a table that are gone and not vacuumed yet, as the server estimates them.", "table")
)

type tableFigures struct {
	Name       string
	Live, Dead float64
}

// Figures are what Postgres says of a service's database, asked with the service's own login. Reading them costs at
// most one question in 10 s and waits for it at most a second. A database that does not answer has figure
// feira_postgres_up at 0 and no others; the scrape goes well all the same.
type Figures struct {
	pool *pgxpool.Pool
	now  func() time.Time

	mu       sync.Mutex
	asked    time.Time
	database []float64 // as in databaseFigures; nil: no answer
	tables   []tableFigures
}

// NewFigures makes the figures of the database that pool leads to.
func NewFigures(pool *pgxpool.Pool) *Figures { return &Figures{pool: pool, now: time.Now} }

// Describe implements [prometheus.Collector].
func (f *Figures) Describe(to chan<- *prometheus.Desc) {
	to <- upDesc
	for _, d := range databaseFigures {
		to <- d.desc
	}
	to <- liveDesc
	to <- deadDesc
}

// Collect implements [prometheus.Collector].
func (f *Figures) Collect(to chan<- prometheus.Metric) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if now := f.now(); f.asked.IsZero() || now.Sub(f.asked) >= figuresEvery {
		f.asked = now
		if err := f.ask(); err != nil {
			f.database, f.tables = nil, nil // old figures would look like new ones
		}
	}
	up := 0.0
	if f.database != nil {
		up = 1
	}
	to <- prometheus.MustNewConstMetric(upDesc, prometheus.GaugeValue, up)
	for i, v := range f.database {
		to <- prometheus.MustNewConstMetric(databaseFigures[i].desc, databaseFigures[i].kind, v)
	}
	for _, t := range f.tables {
		to <- prometheus.MustNewConstMetric(liveDesc, prometheus.GaugeValue, t.Live, t.Name)
		to <- prometheus.MustNewConstMetric(deadDesc, prometheus.GaugeValue, t.Dead, t.Name)
	}
}

// ask reads all figures in one exchange with the server.
func (f *Figures) ask() (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), figuresWithin)
	defer cancel()
	batch := &pgx.Batch{}
	batch.Queue(databaseSQL)
	batch.Queue(tablesSQL, figuresTables)
	began := f.now()
	results := f.pool.SendBatch(ctx, batch)
	defer func() { err = errors.Join(err, results.Close()) }()
	values := make([]float64, len(databaseFigures))
	into := make([]any, len(values))
	for i := range values {
		into[i] = &values[i]
	}
	if err := results.QueryRow().Scan(into...); err != nil {
		return err
	}
	clock := &values[len(values)-1] // the answer was on its way for half of the time, give or take as much
	*clock = seconds(began.Add(f.now().Sub(began)/2)) - *clock
	rows, err := results.Query()
	if err != nil {
		return err
	}
	if f.tables, err = pgx.CollectRows(rows, pgx.RowToStructByPos[tableFigures]); err != nil {
		return err
	}
	f.database = values
	return nil
}

// seconds since 1970.
func seconds(t time.Time) float64 { return float64(t.UnixMicro()) / 1e6 }
