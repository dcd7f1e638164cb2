package events

import (
	"encoding"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"time"
)

// plan is how the JSON of a type is read in the form in which encoding/json writes it: the quick way for what every
// consumer does with every event. Whatever is written otherwise (escapes, null, other letters in a name, fields that
// are not known or are there twice) is left to encoding/json, so both give the same.
type plan struct {
	kind   planKind
	fields []planned // of an object, in the order in which they are written
	item   *plan     // of a list
}

type planKind int

const (
	planObject planKind = iota
	planList
	planText
	planNumber // whole, signed
	planBool
	planTime
)

// planned is a field of an object.
type planned struct {
	name  string
	index []int // of the field, through embedded structs
	plan  *plan
}

// mostFields is how many fields of an object can be told to be there twice.
const mostFields = 64

var (
	timeType      = reflect.TypeFor[time.Time]()
	unmarshaler   = reflect.TypeFor[json.Unmarshaler]()
	textUnmarshal = reflect.TypeFor[encoding.TextUnmarshaler]()
)

// deepest is how far types may be nested: one may hold itself.
const deepest = 16

// planOf is nil for types that encoding/json has to read.
func planOf(t reflect.Type) *plan { return planAt(t, 0) }

func planAt(t reflect.Type, depth int) *plan {
	if depth == deepest {
		return nil
	}
	if t == timeType {
		return &plan{kind: planTime}
	}
	if p := reflect.PointerTo(t); p.Implements(unmarshaler) || p.Implements(textUnmarshal) {
		return nil
	}
	switch t.Kind() { //nolint:exhaustive // the rest has no plan
	case reflect.String:
		return &plan{kind: planText}
	case reflect.Bool:
		return &plan{kind: planBool}
	case reflect.Int, reflect.Int64:
		return &plan{kind: planNumber}
	case reflect.Slice:
		if item := planAt(t.Elem(), depth+1); item != nil && t.Elem().Kind() != reflect.Uint8 {
			return &plan{kind: planList, item: item}
		}
	case reflect.Struct:
		p := &plan{kind: planObject}
		if p.add(t, nil, depth) && len(p.fields) <= mostFields && p.distinct() {
			return p
		}
	}
	return nil
}

// add plans the fields of a struct, and those of structs embedded in it as its own.
func (p *plan) add(t reflect.Type, above []int, depth int) bool {
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		index := slices.Concat(above, []int{i})
		switch {
		case f.Tag.Get("json") == "-":
			continue
		case f.Anonymous && name == "" && f.Type.Kind() == reflect.Struct && f.Type != timeType:
			if !f.IsExported() || depth == deepest || !p.add(f.Type, index, depth+1) {
				return false
			}
			continue
		case f.Anonymous:
			return false
		case !f.IsExported():
			continue
		case name == "":
			name = f.Name
		}
		below := planAt(f.Type, depth+1)
		if below == nil || strings.Contains(options, "string") {
			return false
		}
		p.fields = append(p.fields, planned{name, index, below})
	}
	return true
}

// distinct: where names meet, encoding/json has rules of its own.
func (p *plan) distinct() bool {
	seen := map[string]bool{}
	for _, f := range p.fields {
		name := strings.ToLower(f.name)
		if seen[name] {
			return false
		}
		seen[name] = true
	}
	return true
}
