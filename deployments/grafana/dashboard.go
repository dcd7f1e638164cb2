package main

// dashboard is what one page shows.
type dashboard struct {
	uid, title, about string
	variables         []variable // beside the data source
	rows              []row
}

// row is a part of a page, with a headline. Its panels stand side by side, as many as fit.
type row struct {
	title  string
	panels []panel
}

// panel is one picture or number.
type panel struct {
	kind    kind
	title   string
	about   string // what is seen, and what would be wrong
	unit    string // of Grafana's units
	width   int    // of 24 columns; 0: 8
	limit   float64
	queries []query
}

// kind is how a panel is drawn.
type kind string

const (
	graph  kind = "timeseries"
	number kind = "stat"
)

// query is an expression and the name of what it gives.
type query struct{ expr, legend string }

// variable is a choice at the top of the page.
type variable struct {
	name, label, query string
	listed             bool // all are those that the query lists; else whatever there is, also what is new
}

var (
	serviceChoice  = variable{name: "service", label: "Service", query: "label_values(feira_store_append_queue_length, service)"}
	operatorChoice = variable{name: "operator", label: "Operator", query: `label_values(feira_operator_stopped{service=~"$service"}, operator)`}
)

// Units, by Grafana's names.
const (
	perSecond  = "cps"
	requests   = "reqps"
	seconds    = "s"
	bytesUnit  = "bytes"
	bytesRate  = "Bps"
	share      = "percentunit"
	count      = "short"
	yesOrNo    = "bool_yes_no"
	processors = "none"
)

// lines draws one line per series.
func lines(title, unit, about string, queries ...query) panel {
	return panel{kind: graph, title: title, unit: unit, about: about, queries: queries}
}

// figure shows the last value as a number.
func figure(title, unit, about string, q query) panel {
	return panel{kind: number, title: title, unit: unit, about: about, width: 4, queries: []query{q}}
}

// upTo marks the value from which on something is wrong: numbers turn red, graphs get a line.
func (p panel) upTo(limit float64) panel { p.limit = limit; return p }

// wide gives a panel so many of the 24 columns.
func (p panel) wide(columns int) panel { p.width = columns; return p }

// quantiles are three quantiles of a histogram, with the labels by kept apart.
func quantiles(metric, selector string) []query {
	var all []query
	for _, q := range []struct{ value, name string }{{"0.5", "half"}, {"0.95", "95 %"}, {"0.99", "99 %"}} {
		all = append(all, query{quantile(q.value, "", metric, selector), q.name})
	}
	return all
}

// quantile of a histogram in the last minutes; by: labels that are kept apart, with a comma behind.
func quantile(q, by, metric, selector string) string {
	return "histogram_quantile(" + q + ", sum by (" + by + "le) (rate(" + metric + "_bucket{" + selector + "}[$__rate_interval])))"
}

// mean of a histogram in the last minutes.
func mean(by, metric, selector string) string {
	return "sum by (" + by + ") (rate(" + metric + "_sum{" + selector + "}[$__rate_interval])) / sum by (" + by + ") (rate(" + metric + "_count{" + selector + "}[$__rate_interval]))"
}

// rate of counters, summed over processes.
func rate(by, metric, selector string) string {
	return "sum by (" + by + ") (rate(" + metric + "{" + selector + "}[$__rate_interval]))"
}

// total is rate without any label kept.
func total(metric, selector string) string {
	return "sum(rate(" + metric + "{" + selector + "}[$__rate_interval]))"
}
