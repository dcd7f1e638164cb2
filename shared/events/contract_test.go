package events_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/invopop/jsonschema"
	validator "github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/feira-shop/feira/shared/events"
)

// update writes schemas, asyncapi.yaml and missing golden files. A golden file that exists is never changed.
var update = flag.Bool("update", false, "write schemas/, asyncapi.yaml and missing files of golden/")

// draft is the JSON Schema that AsyncAPI tools understand.
const draft = "http://json-schema.org/draft-07/schema#"

// published lists every shared type.
func published() []events.Event {
	var all []events.Event
	for _, topic := range events.Topics() {
		all = append(all, events.Published(topic)...)
	}
	return all
}

// schemasOf generates the JSON Schema of every type, with the comments of the Go types as descriptions.
func schemasOf(t *testing.T) map[string][]byte {
	t.Helper()
	r := jsonschema.Reflector{Anonymous: true, ExpandedStruct: true, DoNotReference: true}
	for base, dir := range map[string]string{"events": ".", "money": "../money"} {
		if err := r.AddGoComments("github.com/feira-shop/feira/shared/"+base, dir, jsonschema.WithFullComment()); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range r.CommentMap {
		r.CommentMap[name] = strings.Join(strings.Fields(text), " ")
	}
	all := map[string][]byte{}
	for _, e := range published() {
		s := r.Reflect(e)
		s.Version, s.ID, s.Title = draft, jsonschema.ID("urn:feira:event:"+e.EventType()), e.EventType()
		if topic, _ := events.TopicOf(e.EventType()); topic.Owner == "" {
			s.AdditionalProperties = nil // strangers may say more
		}
		text, err := json.MarshalIndent(s, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		all[e.EventType()] = append(text, '\n')
	}
	return all
}

// writes lets the tests that write files go before those that read them.
func writes(t *testing.T) {
	t.Helper()
	if !*update {
		t.Parallel()
	}
}

// sameFile compares a generated file with the one in the repository, or writes it.
func sameFile(t *testing.T, path string, want []byte) {
	t.Helper()
	got, err := os.ReadFile(path)
	if err == nil && bytes.Equal(got, want) {
		return
	}
	if !*update {
		t.Errorf("%s is not what the types say (%v); run go test ./shared/events -update and review the difference", path, err)
		return
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, want, 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestSchemasSayWhatTheTypesSay(t *testing.T) {
	writes(t)
	want := schemasOf(t)
	for typ, schema := range want {
		sameFile(t, filepath.Join("schemas", typ+".json"), schema)
	}
	files, err := filepath.Glob("schemas/*")
	if err != nil || len(files) != len(want) {
		t.Errorf("%d schemas for %d types (%v); a type that was published keeps its schema and its struct", len(files), len(want), err)
	}
}

// compiled gives the validator of every type's schema as it is in the repository.
func compiled(t *testing.T) map[string]*validator.Schema {
	t.Helper()
	c := validator.NewCompiler()
	c.AssertFormat()
	all := map[string]*validator.Schema{}
	for _, e := range published() {
		s, err := c.Compile(filepath.Join("schemas", e.EventType()+".json"))
		if err != nil {
			t.Fatal(err)
		}
		all[e.EventType()] = s
	}
	return all
}

// encoded is an event as it is published, indented for people.
func encoded(t *testing.T, e events.Event) []byte {
	t.Helper()
	text, err := json.MarshalIndent(e, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return append(text, '\n')
}

func TestEveryTypeHasAnExample(t *testing.T) {
	t.Parallel()
	for _, e := range published() {
		if complete(e) == nil {
			t.Errorf("%s has no complete example; add one to examples_test.go", e.EventType())
		}
	}
}

// Golden files are what was once published. They are added and never changed.
func TestGoldenFilesStay(t *testing.T) {
	writes(t)
	for name, all := range examples {
		for _, e := range all {
			path := filepath.Join("golden", e.EventType(), name+".json")
			want := encoded(t, e)
			got, err := os.ReadFile(path)
			switch {
			case errors.Is(err, fs.ErrNotExist):
				sameFile(t, path, want)
			case err != nil:
				t.Fatal(err)
			case !bytes.Equal(got, want):
				t.Errorf("%s is not what %s encodes to any more. A released type never changes: make the next version and an upcaster. "+
					"Of a type that no release has, remove the file and run go test ./shared/events -update", path, e.EventType())
			}
		}
	}
}

func TestEveryGoldenFileIsReadAsItWasWritten(t *testing.T) {
	t.Parallel()
	registry, schemas := events.NewRegistry(), compiled(t)
	if err := registry.Validate(); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("golden/*/*.json")
	if err != nil || len(files) < len(published()) {
		t.Fatalf("%d golden files for %d types, %v", len(files), len(published()), err)
	}
	for _, path := range files {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		typ := filepath.Base(filepath.Dir(path))
		e, err := registry.Decode(typ, data)
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		if again := encoded(t, e); e.EventType() == typ && !bytes.Equal(again, data) {
			t.Errorf("%s: something is lost when it is read; it comes back as\n%s", path, again)
		}
		value, err := validator.UnmarshalJSON(bytes.NewReader(data))
		if err != nil {
			t.Fatal(err)
		}
		if err := schemas[typ].Validate(value); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// A complete example leaves no field empty, so that the golden files show every field there is.
func TestCompleteExamplesAreComplete(t *testing.T) {
	t.Parallel()
	for _, e := range examples["complete"] {
		empty(t, e.EventType(), reflect.ValueOf(e))
	}
}

func empty(t *testing.T, path string, v reflect.Value) {
	t.Helper()
	switch {
	case v.Kind() == reflect.Slice:
		for i := range v.Len() {
			empty(t, path, v.Index(i))
		}
	case v.Kind() == reflect.Struct && v.NumField() > 0 && v.Type().Field(0).IsExported():
		for i := range v.NumField() {
			empty(t, path+"."+v.Type().Field(i).Name, v.Field(i))
		}
	}
	if v.IsZero() && v.Kind() != reflect.Int64 { // 0 pieces are a value
		t.Errorf("%s is empty", path)
	}
}

// Data that a schema refuses: the schemas are strict about what is missing, unknown or of another type.
func TestSchemasRefuse(t *testing.T) {
	t.Parallel()
	schemas := compiled(t)
	const typ = "shop.feira.points.earned.v1"
	for name, data := range map[string]string{
		"missing":      `{"customer":"c","order":"o","points":1}`,
		"unknown":      `{"customer":"c","order":"o","points":1,"paid":{"amount":1,"currency":"BRL"},"x":1}`,
		"a float":      `{"customer":"c","order":"o","points":1.5,"paid":{"amount":1,"currency":"BRL"}}`,
		"no currency":  `{"customer":"c","order":"o","points":1,"paid":{"amount":1,"currency":"real"}}`,
		"not an event": `[]`,
	} {
		value, err := validator.UnmarshalJSON(strings.NewReader(data))
		if err != nil {
			t.Fatal(err)
		}
		if schemas[typ].Validate(value) == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}
