package events

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// same reads data by the plan and with encoding/json. What the plan takes must be the same, and no error.
func same(t *testing.T, k kind, data []byte) (taken bool) {
	t.Helper()
	got, want := reflect.New(k.typ), reflect.New(k.typ)
	if k.plan == nil || !k.plan.read(data, got.Elem()) {
		return false
	}
	if err := json.Unmarshal(data, want.Interface()); err != nil || !reflect.DeepEqual(got.Interface(), want.Interface()) {
		t.Fatalf("%s of %q\nby its plan     %+v\nby encoding/json %+v, %v", k.typ, data, got.Elem(), want.Elem(), err)
	}
	return true
}

// golden is a file of a type as it was first published.
type golden struct {
	typ  string
	data []byte
}

func goldens(tb testing.TB) (all []golden) {
	tb.Helper()
	files, err := filepath.Glob("golden/*/*.json")
	if err != nil || len(files) == 0 {
		tb.Fatal("no golden files", err)
	}
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			tb.Fatal(err)
		}
		all = append(all, golden{filepath.Base(filepath.Dir(f)), data})
	}
	return all
}

// What is hot is read by its plan, in every form in which our own stores write it.
func TestPaymentsAreReadByTheirPlan(t *testing.T) {
	t.Parallel()
	r := NewRegistry()
	read := 0
	all := goldens(t)
	for _, g := range all {
		if same(t, r.kinds[g.typ], g.data) {
			read++
		} else if strings.HasPrefix(g.typ, "shop.feira.payment.") {
			t.Errorf("%s is not read by its plan: %s", g.typ, g.data)
		}
	}
	t.Logf("%d of %d golden files", read, len(all))
}

// odd things that a plan must leave alone, or take as encoding/json does.
var odd = []string{
	`{"order":"a","order":"b"}`, `{"ORDER":"a"}`, `{"order":null}`, `{"order":"\u0061"}`, "{\"order\":\"a\nb\"}", "{\"order\":\"\xff\"}",
	`{"order":"ação","amount":{"amount":1,"currency":"BRL"}}`, `{"amount":{"amount":1.0}}`, `{"amount":{"amount":1e2}}`, `{"amount":{"amount":01}}`,
	`{"amount":{"amount":-0}}`, `{"amount":{"amount":9223372036854775807}}`, `{"amount":{"amount":999999999999999999}}`, `{"amount":{"amount": - 1}}`,
	`{"purchased_at":"2026-03-01T12:00:00.5+02:00"}`, `{"purchased_at":"2026-03-01t12:00:00z"}`, `{"purchased_at":""}`, `{"purchased_at":1}`,
	` { "order" : "a" , "payment":"b" } `, `{"order":"a",}`, `{"order":"a"} x`, `{"order":"a"`, `{"order"`, `{`, ``, `[]`, `{}`, `{"unknown":1}`,
	`{"lines":[]}`, `{"lines":[{}]}`, `{"lines":[{"sku":"a"},{"quantity":2}]}`, `{"lines":null}`, `{"rules":["a","b"]}`, `{"rules":[]}`, `{"rules":["a",]}`,
	`{"customer_data":{"a":1}}`, `{"personal":{}}`,
}

func TestAPlanReadsAsEncodingJSON(t *testing.T) {
	t.Parallel()
	r := NewRegistry()
	for _, k := range r.kinds {
		for _, data := range odd {
			same(t, k, []byte(data))
		}
	}
	for _, unplanned := range []any{
		struct{ A json.RawMessage }{}, struct{ A *int }{}, struct{ A map[string]int }{}, struct{ A any }{}, struct{ A []byte }{},
		struct{ A, B string }{}, struct {
			A string `json:"b"`
			B string
		}{},
		struct {
			A int `json:"a,string"`
		}{},
	} {
		typ := reflect.TypeOf(unplanned)
		if p := planOf(typ); (p != nil) != (typ == reflect.TypeFor[struct{ A, B string }]()) {
			t.Errorf("%s has the plan %v", typ, p)
		}
	}
}

// FuzzPlan holds plans against encoding/json.
func FuzzPlan(f *testing.F) {
	r := NewRegistry()
	var types []string
	for _, g := range goldens(f) {
		f.Add(uint(len(types)), g.data)
		types = append(types, g.typ)
	}
	for _, data := range odd {
		f.Add(uint(0), []byte(data))
	}
	f.Fuzz(func(t *testing.T, n uint, data []byte) { same(t, r.kinds[types[n%uint(len(types))]], data) })
}
