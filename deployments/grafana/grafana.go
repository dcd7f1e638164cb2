package main

import "strings"

// The types of this file are Grafana's format, as far as it is used: schema 39, of Grafana 10.3 and newer, which
// upgrades it when it loads it.
const schemaVersion = 39

// source is the data source that the page's user chose.
var source = dataSource{Type: "prometheus", UID: "${datasource}"}

type dataSource struct {
	Type string `json:"type"`
	UID  string `json:"uid"`
}

type page struct {
	UID           string            `json:"uid"`
	Title         string            `json:"title"`
	Description   string            `json:"description"`
	Tags          []string          `json:"tags"`
	SchemaVersion int               `json:"schemaVersion"`
	Editable      bool              `json:"editable"`
	GraphTooltip  int               `json:"graphTooltip"` // 1: one crosshair in all panels
	Refresh       string            `json:"refresh"`
	Time          map[string]string `json:"time"`
	Links         []link            `json:"links"`
	Templating    list[choice]      `json:"templating"`
	Annotations   list[annotation]  `json:"annotations"`
	Panels        []drawn           `json:"panels"`
}

type list[T any] struct {
	List []T `json:"list"`
}

type link struct {
	Title       string   `json:"title"`
	Type        string   `json:"type"`
	Tags        []string `json:"tags"`
	AsDropdown  bool     `json:"asDropdown"`
	IncludeVars bool     `json:"includeVars"`
	KeepTime    bool     `json:"keepTime"`
}

type choice struct {
	Name       string      `json:"name"`
	Label      string      `json:"label"`
	Type       string      `json:"type"`
	Query      string      `json:"query"`
	DataSource *dataSource `json:"datasource,omitempty"`
	Refresh    int         `json:"refresh,omitempty"` // 2: whenever the time range changes
	Sort       int         `json:"sort,omitempty"`
	Multi      bool        `json:"multi"`
	IncludeAll bool        `json:"includeAll"`
	AllValue   string      `json:"allValue,omitempty"`
	Current    *current    `json:"current,omitempty"`
}

type current struct {
	Text  []string `json:"text"`
	Value []string `json:"value"`
}

type annotation struct {
	Name        string     `json:"name"`
	Enable      bool       `json:"enable"`
	IconColor   string     `json:"iconColor"`
	DataSource  dataSource `json:"datasource"`
	Expr        string     `json:"expr"`
	TitleFormat string     `json:"titleFormat"`
	TextFormat  string     `json:"textFormat"`
}

type drawn struct {
	ID          int            `json:"id"`
	Type        string         `json:"type"`
	Title       string         `json:"title"`
	Description string         `json:"description,omitempty"`
	GridPos     gridPos        `json:"gridPos"`
	DataSource  *dataSource    `json:"datasource,omitempty"`
	FieldConfig *fieldConfig   `json:"fieldConfig,omitempty"`
	Options     map[string]any `json:"options,omitempty"`
	Targets     []target       `json:"targets,omitempty"`
	Collapsed   *bool          `json:"collapsed,omitempty"` // of rows
}

type gridPos struct {
	X int `json:"x"`
	Y int `json:"y"`
	W int `json:"w"`
	H int `json:"h"`
}

type fieldConfig struct {
	Defaults  fieldDefaults `json:"defaults"`
	Overrides []any         `json:"overrides"`
}

type fieldDefaults struct {
	Unit       string         `json:"unit"`
	Min        *float64       `json:"min,omitempty"`
	Thresholds thresholds     `json:"thresholds"`
	Custom     map[string]any `json:"custom,omitempty"`
}

type thresholds struct {
	Mode  string `json:"mode"`
	Steps []step `json:"steps"`
}

type step struct {
	Color string   `json:"color"`
	Value *float64 `json:"value"` // null: from the least value on
}

type target struct {
	RefID        string     `json:"refId"`
	DataSource   dataSource `json:"datasource"`
	Expr         string     `json:"expr"`
	LegendFormat string     `json:"legendFormat"`
	Instant      bool       `json:"instant,omitempty"`
	Range        bool       `json:"range"`
}

// grafana turns a dashboard into Grafana's format.
func (d dashboard) grafana() page {
	p := page{
		UID: d.uid, Title: d.title, Description: d.about, Tags: []string{"feira"}, SchemaVersion: schemaVersion,
		GraphTooltip: 1, Refresh: "10s", Time: map[string]string{"from": "now-15m", "to": "now"},
		Links:       []link{{Title: "Feira", Type: "dashboards", Tags: []string{"feira"}, IncludeVars: true, KeepTime: true}},
		Templating:  list[choice]{[]choice{{Name: "datasource", Label: "Data source", Type: "datasource", Query: "prometheus"}}},
		Annotations: list[annotation]{[]annotation{firing}},
	}
	for _, v := range d.variables {
		p.Templating.List = append(p.Templating.List, v.grafana())
	}
	p.Panels = layOut(d.rows)
	return p
}

// firing marks on every graph when an alert fired.
var firing = annotation{
	Name: "Alerts", Enable: true, IconColor: "red", DataSource: source, Expr: `ALERTS{alertstate="firing"}`,
	TitleFormat: "{{alertname}}", TextFormat: "{{severity}} {{service}} {{operator}}",
}

func (v variable) grafana() choice {
	all := ".*"
	if v.listed {
		all = ""
	}
	return choice{
		Name: v.name, Label: v.label, Type: "query", Query: v.query, DataSource: &source, Refresh: 2, Sort: 1,
		Multi: true, IncludeAll: true, AllValue: all, Current: &current{Text: []string{"All"}, Value: []string{"$__all"}},
	}
}

// columns of a page.
const columns = 24

// layOut puts panels beside each other as long as they fit.
func layOut(rows []row) (all []drawn) {
	id, y := 0, 0
	next := func() int { id++; return id }
	for _, r := range rows {
		closed := false
		all = append(all, drawn{ID: next(), Type: "row", Title: r.title, GridPos: gridPos{0, y, columns, 1}, Collapsed: &closed})
		y++
		x, high := 0, 0
		for _, p := range r.panels {
			d := p.grafana(next())
			if x+d.GridPos.W > columns {
				x, y, high = 0, y+high, 0
			}
			d.GridPos.X, d.GridPos.Y = x, y
			x, high = x+d.GridPos.W, max(high, d.GridPos.H)
			all = append(all, d)
		}
		y += high
	}
	return all
}

func (p panel) grafana(id int) drawn {
	d := drawn{
		ID: id, Type: string(p.kind), Title: p.title, Description: p.about, DataSource: &source,
		GridPos: gridPos{W: 8, H: 8}, FieldConfig: &fieldConfig{Overrides: []any{}},
	}
	if p.width > 0 {
		d.GridPos.W = p.width
	}
	for i, q := range p.queries {
		d.Targets = append(d.Targets, target{
			RefID: string(rune('A' + i)), DataSource: source, Expr: strings.TrimSpace(q.expr), LegendFormat: q.legend,
			Instant: p.kind == number, Range: p.kind != number,
		})
	}
	zero := 0.0
	d.FieldConfig.Defaults = fieldDefaults{Unit: p.unit, Min: &zero, Thresholds: p.thresholds()}
	switch p.kind {
	case number:
		d.GridPos.H = 4
		d.Options = map[string]any{
			"colorMode": "value", "graphMode": "none", "textMode": "auto",
			"reduceOptions": map[string]any{"calcs": []string{"lastNotNull"}, "fields": "", "values": false},
		}
	case graph:
		d.FieldConfig.Defaults.Custom = map[string]any{"lineWidth": 1, "fillOpacity": 10, "showPoints": "never", "thresholdsStyle": map[string]any{"mode": p.thresholdStyle()}}
		d.Options = map[string]any{
			"legend":  map[string]any{"displayMode": "list", "placement": "bottom", "showLegend": true},
			"tooltip": map[string]any{"mode": "multi", "sort": "desc"},
		}
	}
	return d
}

func (p panel) thresholds() thresholds {
	t := thresholds{Mode: "absolute", Steps: []step{{Color: "green"}}}
	if p.limit > 0 {
		t.Steps = append(t.Steps, step{Color: "red", Value: &p.limit})
	}
	return t
}

func (p panel) thresholdStyle() string {
	if p.limit > 0 {
		return "dashed"
	}
	return "off"
}
