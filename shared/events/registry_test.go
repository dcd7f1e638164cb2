package events_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/feira-shop/feira/shared/events"
)

// noteV1, noteV2 and noteV3 are one private type through three versions.
type (
	noteV1 struct {
		Text string `json:"text"`
	}
	noteV2 struct {
		Words []string `json:"words"`
	}
	noteV3 struct {
		Words []string `json:"words"`
		Count int      `json:"count"`
	}
)

func (noteV1) EventType() string { return "shop.feira.test.note.taken.v1" }
func (noteV2) EventType() string { return "shop.feira.test.note.taken.v2" }
func (noteV3) EventType() string { return "shop.feira.test.note.taken.v3" }
func (noteV1) EventKey() string  { return "" }
func (noteV2) EventKey() string  { return "" }
func (noteV3) EventKey() string  { return "" }

func (n noteV1) Upcast() events.Event { return noteV2{Words: []string{n.Text}} }
func (n noteV2) Upcast() events.Event { return noteV3{Words: n.Words, Count: len(n.Words)} }

// circular upcasts to itself.
type circular struct{}

func (circular) EventType() string      { return "shop.feira.test.circle.closed.v1" }
func (circular) EventKey() string       { return "" }
func (c circular) Upcast() events.Event { return c }

// odd has a type without a version.
type odd struct{}

func (odd) EventType() string { return "shop.feira.test.odd" }
func (odd) EventKey() string  { return "" }

// pointed is declared by a pointer.
type pointed struct{}

func (*pointed) EventType() string { return "shop.feira.test.pointed.at.v1" }
func (*pointed) EventKey() string  { return "" }

func TestDecodeGivesTheTypedEvent(t *testing.T) {
	t.Parallel()
	r := events.NewRegistry()
	e, err := r.Decode("shop.feira.order.stock_reserved.v1", json.RawMessage(`{"order":"o1"}`))
	if err != nil || e != (events.OrderStockReserved{Order: "o1"}) {
		t.Fatalf("got %#v, %v", e, err)
	}
}

func TestDecodeGivesTheNewestVersion(t *testing.T) {
	t.Parallel()
	r := events.NewRegistry(noteV1{}, noteV2{}, noteV3{})
	for typ, data := range map[string]string{
		noteV1{}.EventType(): `{"text":"a"}`,
		noteV2{}.EventType(): `{"words":["a"]}`,
		noteV3{}.EventType(): `{"words":["a"],"count":1}`,
	} {
		e, err := r.Decode(typ, json.RawMessage(data))
		if err != nil {
			t.Fatalf("%s: %v", typ, err)
		}
		n, ok := e.(noteV3)
		if !ok || n.Count != 1 || len(n.Words) != 1 || n.Words[0] != "a" {
			t.Errorf("%s became %#v, want the note of version 3", typ, e)
		}
	}
}

func TestDecodeNamesWhatItDoesNotKnow(t *testing.T) {
	t.Parallel()
	r := events.NewRegistry(noteV1{}, noteV2{})
	for _, typ := range []string{"", "x", ".v1", "v1", "shop.feira.order.v1", "shop.feira.tick.v1", "shop.feira.order.placed.v", "shop.feira.order.placed.vx"} {
		_, err := r.Decode(typ, json.RawMessage(`{}`))
		var unknown *events.UnknownTypeError
		if !errors.As(err, &unknown) || unknown.Type != typ {
			t.Errorf("%q: got %v, want UnknownTypeError", typ, err)
		}
	}
	for _, typ := range []string{"shop.feira.order.placed", "shop.feira.order.placed.v2", "shop.feira.order.placed.v0", "shop.feira.order.placed.v01",
		"shop.feira.order.placed.v99999999999999999999", "shop.feira.test.note.taken.v3"} {
		_, err := r.Decode(typ, json.RawMessage(`{}`))
		var unknown *events.UnknownVersionError
		if !errors.As(err, &unknown) || unknown.Type != typ || len(unknown.Known) == 0 {
			t.Errorf("%q: got %v, want UnknownVersionError", typ, err)
		}
	}
}

func TestDecodeRefusesDataThatDoesNotFit(t *testing.T) {
	t.Parallel()
	r := events.NewRegistry()
	const typ = "shop.feira.points.earned.v1"
	for _, data := range []string{
		"", " ", "\xff", "null", " null\n", "[]", `"x"`, "1", "{", `{"customer":"c"}x`, `{"customer":1}`,
		`{"customer":"c","points":1.5}`, `{"customer":"c","points":"2"}`, `{"customer":"c","points":9223372036854775808}`,
		`{}`, `{"order":"o"}`, // without the key its order on Kafka would be lost
	} {
		e, err := r.Decode(typ, json.RawMessage(data))
		var invalid *events.InvalidError
		if !errors.As(err, &invalid) || invalid.Type != typ || e != nil {
			t.Errorf("%q: got %#v, %v, want InvalidError", data, e, err)
		}
	}
}

func TestNullIsNoEventEvenWithoutAKey(t *testing.T) {
	t.Parallel()
	r := events.NewRegistry(noteV1{})
	for _, data := range []string{"null", "\tnull "} {
		var invalid *events.InvalidError
		if e, err := r.Decode(noteV1{}.EventType(), json.RawMessage(data)); !errors.As(err, &invalid) {
			t.Errorf("%q: got %#v, %v, want InvalidError", data, e, err)
		}
	}
}

func TestUpcastersThatDoNotAscendAreRefused(t *testing.T) {
	t.Parallel()
	_, err := events.NewRegistry(circular{}).Decode(circular{}.EventType(), json.RawMessage(`{}`))
	var invalid *events.InvalidError
	var declaration *events.DeclarationError
	if !errors.As(err, &invalid) || !errors.As(err, &declaration) {
		t.Fatalf("got %v, want an InvalidError because of a DeclarationError", err)
	}
}

func TestValidateFindsWrongDeclarations(t *testing.T) {
	t.Parallel()
	if err := events.NewRegistry(noteV1{}, noteV2{}, noteV3{}).Validate(); err != nil {
		t.Fatalf("right declarations: %v", err)
	}
	for name, wrong := range map[string][]events.Event{
		"no version":       {odd{}},
		"pointer":          {&pointed{}},
		"twice":            {noteV1{}, noteV1{}},
		"shared and again": {events.OrderPlaced{}},
	} {
		var declaration *events.DeclarationError
		if err := events.NewRegistry(wrong...).Validate(); !errors.As(err, &declaration) {
			t.Errorf("%s: got %v, want DeclarationError", name, err)
		}
	}
}

func TestTopicOf(t *testing.T) {
	t.Parallel()
	for typ, want := range map[string]string{
		"shop.feira.order.placed.v1":         "orders",
		"shop.feira.payment.voided.v1":       "payments",
		"shop.feira.stock.received.v1":       "inventory",
		"shop.feira.purchase.held.v1":        "fraud",
		"shop.feira.points.reversed.v1":      "loyalty",
		"shop.feira.product.changed.v1":      "catalog",
		"shop.feira.user.acted.v1":           "eventos-usuario",
		"shop.feira.account_spend.closed.v1": "analytics",
		"shop.feira.order.placed.v2":         "",
		"shop.feira.test.note.taken.v1":      "",
		events.TickType:                      "",
		"shop.feira.order.stock_reserved.":   "",
	} {
		topic, ok := events.TopicOf(typ)
		if topic.Name != want || ok != (want != "") {
			t.Errorf("%s is on %q (%v), want %q", typ, topic.Name, ok, want)
		}
	}
}

func TestVersionsListsTheTypeItself(t *testing.T) {
	t.Parallel()
	if got := events.Versions("shop.feira.order.placed.v1"); len(got) != 1 || got[0] != "shop.feira.order.placed.v1" {
		t.Errorf("got %v", got)
	}
	if got := events.Versions("shop.feira.order.placed.v2"); len(got) != 2 || got[1] != "shop.feira.order.placed.v1" {
		t.Errorf("a later version is met as the older one too; got %v", got)
	}
}
