package events_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/feira-shop/feira/shared/events"
)

func acted(data string) (events.UserActed, error) {
	e, err := events.NewRegistry().Decode(events.Clicks.Plain, json.RawMessage(data))
	if err != nil {
		return events.UserActed{}, err
	}
	return e.(events.UserActed), nil
}

// What programs send: Python's json.dumps with an int, a float of time.time(), milliseconds of JavaScript.
func TestWhatStrangersWriteIsRead(t *testing.T) {
	t.Parallel()
	for data, want := range map[string]events.UserActed{
		`{"id_usuario": 42, "acao": "clique", "timestamp": 1711900000}`:          {User: "42", Action: "clique", Timestamp: 1711900000_000000},
		`{"id_usuario":"42","acao":"clique","timestamp":1711900000.25}`:          {User: "42", Action: "clique", Timestamp: 1711900000_250000},
		`{"id_usuario":-7,"acao":"ver produto","timestamp":1711900000123}`:       {User: "-7", Action: "ver produto", Timestamp: 1711900000_123000},
		`{"id_usuario":"ana","acao":"ação ☕","timestamp":1711900000123.5}`:       {User: "ana", Action: "ação ☕", Timestamp: 1711900000_123500},
		`{"id_usuario":1,"acao":"a","timestamp":1764473590.0012346,"x":{"y":1}}`: {User: "1", Action: "a", Timestamp: 1764473590_001235},
		`{"id_usuario":1,"acao":"a","timestamp":1.7119e9}`:                       {User: "1", Action: "a", Timestamp: 1711900000_000000},
		`{"id_usuario":42.0,"acao":"a","timestamp":1}`:                           {User: "42", Action: "a", Timestamp: 1_000000},
		`{"id_usuario":1,"acao":"a","timestamp":0}`:                              {User: "1", Action: "a"},
		`{"id_usuario":1,"acao":"a","timestamp":99999999999}`:                    {User: "1", Action: "a", Timestamp: 99999999999_000000},
		`{"id_usuario":1,"acao":"a","timestamp":100000000000}`:                   {User: "1", Action: "a", Timestamp: 100000000_000000},
	} {
		if got, err := acted(data); err != nil || got != want {
			t.Errorf("%s: got %+v, %v", data, got, err)
		}
	}
	if at := events.UnixTime(1711900000_250000).Time(); at.Format(time.RFC3339Nano) != "2024-03-31T15:46:40.25Z" {
		t.Errorf("the time is %s", at)
	}
}

// Whatever else comes is refused, with the field that is wrong by name.
func TestWhatIsNoClickIsRefusedByField(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("é", events.MostActed+1)
	for data, field := range map[string]string{
		`{"acao":"a","timestamp":1}`:                             "id_usuario",
		`{"id_usuario":null,"acao":"a","timestamp":1}`:           "id_usuario",
		`{"id_usuario":4.5,"acao":"a","timestamp":1}`:            "id_usuario",
		`{"id_usuario":1e19,"acao":"a","timestamp":1}`:           "id_usuario",
		`{"id_usuario":9223372036854775808,"acao":"a"}`:          "id_usuario",
		`{"id_usuario":true,"acao":"a","timestamp":1}`:           "id_usuario",
		`{"id_usuario":{},"acao":"a","timestamp":1}`:             "id_usuario",
		`{"id_usuario":"","acao":"a","timestamp":1}`:             "id_usuario",
		`{"id_usuario":"a\u0000b","acao":"a","timestamp":1}`:     "id_usuario",
		`{"id_usuario":"` + long + `","acao":"a","timestamp":1}`: "id_usuario",
		`{"id_usuario":1,"timestamp":1}`:                         "acao",
		`{"id_usuario":1,"acao":1,"timestamp":1}`:                "acao",
		`{"id_usuario":1,"acao":null,"timestamp":1}`:             "acao",
		`{"id_usuario":1,"acao":"","timestamp":1}`:               "acao",
		`{"id_usuario":1,"acao":"a\nb","timestamp":1}`:           "acao",
		`{"id_usuario":1,"acao":"` + long + `","timestamp":1}`:   "acao",
		`{"id_usuario":1,"acao":"a"}`:                            "timestamp",
		`{"id_usuario":1,"acao":"a","timestamp":null}`:           "timestamp",
		`{"id_usuario":1,"acao":"a","timestamp":"1711900000"}`:   "timestamp",
		`{"id_usuario":1,"acao":"a","timestamp":-1}`:             "timestamp",
		`{"id_usuario":1,"acao":"a","timestamp":1e14}`:           "timestamp",
		`{"id_usuario":1,"acao":"a","timestamp":1e999999999}`:    "timestamp",
	} {
		_, err := acted(data)
		var invalid *events.InvalidError
		var wrong *events.FieldError
		if !errors.As(err, &invalid) || !errors.As(err, &wrong) || wrong.Field != field {
			t.Errorf("%s: got %v, want it to name %s", data, err, field)
		}
	}
	for _, data := range []string{`clique`, `"clique"`, `[]`, `42`, ``, `null`, `{"id_usuario":1,`} {
		if got, err := acted(data); err == nil {
			t.Errorf("%q is read as %+v", data, got)
		}
	}
}

func TestClicksAreReadAsTheyWereWritten(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		want := events.UserActed{
			User:      rapid.OneOf(rapid.StringMatching(`[a-z0-9é☕ -]{1,64}`), rapid.Map(rapid.Int64(), func(n int64) string { return fmt.Sprint(n) })).Draw(t, "user"),
			Action:    rapid.StringMatching(`[a-zç ]{1,64}`).Draw(t, "action"),
			Timestamp: events.UnixTime(rapid.Int64Range(0, 4_000_000_000_000000).Draw(t, "timestamp")),
		}
		data, err := json.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := acted(string(data)); err != nil || got != want {
			t.Fatalf("%s came back as %+v, %v", data, got, err)
		}
	})
}

func FuzzUserActed(f *testing.F) {
	f.Add([]byte(`{"id_usuario": 42, "acao": "clique", "timestamp": 1711900000}`))
	f.Add([]byte(`{"id_usuario":"\u0000","acao":"a","timestamp":1e14}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		e, err := acted(string(data))
		if err != nil {
			return
		}
		again, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := acted(string(again)); err != nil {
			t.Errorf("%s was taken and is not as it is written: %s: %v", data, again, err)
		}
	})
}

func TestPlainRecordsAreNamedByTheirPlace(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 3, 1, 9, 0, 0, 0, time.FixedZone("", -3*3600))
	r, err := events.FromPlain(events.Clicks, 2, 77, []byte("ana"), []byte("{}"), at)
	if err != nil || r.ID != "eventos-usuario/2/77" || r.Type != (events.UserActed{}).EventType() || r.Key != "ana" ||
		string(r.Data) != "{}" || !r.Time.Equal(at) || !r.RecordedAt.Equal(at) || r.Time.Location() != time.UTC || r.Sequence != 0 {
		t.Errorf("got %+v, %v", r, err)
	}
	var no *events.NotCloudEventError
	if _, err := events.FromPlain(events.Clicks, 0, 0, []byte("\xff"), nil, at); !errors.As(err, &no) {
		t.Errorf("a key that is no text: %v", err)
	}
	if plain := events.IsPlain(each(nil)); !plain {
		t.Error("a record without headers is not plain")
	}
	if plain := events.IsPlain(each([]events.Header{{Key: "traceparent", Value: "x"}})); !plain {
		t.Error("a trace alone makes no CloudEvent")
	}
	if events.IsPlain(each([]events.Header{{Key: "traceparent", Value: "x"}, {Key: events.HeaderID, Value: "x"}})) {
		t.Error("a record with a header of CloudEvents is plain")
	}
}
