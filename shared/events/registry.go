package events

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Registry decodes data by CloudEvents type. It is safe for concurrent use.
type Registry struct {
	kinds map[string]kind
	names map[string][]string // name without version → types
	own   []Event             // the private ones
	errs  []error
}

// kind is one type that can be decoded.
type kind struct {
	typ  reflect.Type
	plan *plan      // nil: there is none
	room *sync.Pool // pointers to values of the type, all zero, to be filled by the plan and copied from
	// keyed types always have a record key: without one they would lose their order on Kafka.
	keyed bool
}

// NewRegistry knows every shared event and the given private ones (zero values serve as prototypes).
func NewRegistry(private ...Event) *Registry {
	r := &Registry{kinds: map[string]kind{}, names: map[string][]string{}, own: private}
	for _, p := range published {
		for _, e := range p.types {
			r.declare(e, true)
		}
	}
	for _, e := range private {
		r.declare(e, false)
	}
	return r
}

func (r *Registry) declare(e Event, keyed bool) {
	typ := e.EventType()
	name, _, ok := splitType(typ)
	_, twice := r.kinds[typ]
	switch {
	case !ok:
		r.errs = append(r.errs, &DeclarationError{typ, "a type ends in its version, as in shop.feira.order.placed.v1"})
	case twice:
		r.errs = append(r.errs, &DeclarationError{typ, "is declared twice; give one of them another name or version"})
	case reflect.TypeOf(e).Kind() != reflect.Struct:
		r.errs = append(r.errs, &DeclarationError{typ, fmt.Sprintf("%T is not a struct; declare the value, not a pointer", e)})
	default:
		t := reflect.TypeOf(e)
		r.kinds[typ] = kind{t, planOf(t), &sync.Pool{New: func() any { return reflect.New(t).Interface() }}, keyed}
		r.names[name] = append(r.names[name], typ)
	}
}

// Owned lists prototypes of what a service may append: the events of its topics, and the private ones.
func (r *Registry) Owned(service string) []Event {
	var owned []Event
	for _, p := range published {
		if p.topic.Owner == service {
			owned = append(owned, p.types...)
		}
	}
	return append(owned, r.own...)
}

// Validate returns what is wrong with the declarations, as [*DeclarationError]s. Call it when a service starts.
func (r *Registry) Validate() error { return errors.Join(r.errs...) }

// Decode returns the event as its newest version (upcasters applied). Errors: [*UnknownTypeError],
// [*UnknownVersionError] for a known name of an unknown version, [*InvalidError] for data that does not fit.
func (r *Registry) Decode(typ string, data json.RawMessage) (Event, error) {
	k, ok := r.kinds[typ]
	if !ok {
		return nil, r.unknown(typ)
	}
	e, err := k.decode(data)
	if err == nil {
		e, err = upcast(e)
	}
	if err == nil && k.keyed && e.EventKey() == "" {
		err = errors.New("the field that is its record key is missing or empty")
	}
	if err != nil {
		return nil, &InvalidError{typ, err}
	}
	return e, nil
}

func (k kind) decode(data json.RawMessage) (Event, error) {
	if k.plan != nil {
		pointer := k.room.Get()
		v := reflect.ValueOf(pointer).Elem()
		defer func() {
			v.SetZero()
			k.room.Put(pointer)
		}()
		if k.plan.read(data, v) {
			return k.event(v)
		}
	}
	// encoding/json takes null for any struct and leaves it empty.
	if bytes.Equal(bytes.TrimSpace(data), []byte("null")) {
		return nil, errors.New("it is null, not an object")
	}
	v := reflect.New(k.typ)
	if err := json.Unmarshal(data, v.Interface()); err != nil {
		return nil, err
	}
	return k.event(v.Elem())
}

func (k kind) event(v reflect.Value) (Event, error) {
	e, ok := v.Interface().(Event)
	if !ok {
		return nil, fmt.Errorf("%s is not an Event", k.typ)
	}
	return e, nil
}

// upcast goes from version to version; versions must ascend, so it ends.
func upcast(e Event) (Event, error) {
	for {
		old, ok := e.(Upcaster)
		if !ok {
			return e, nil
		}
		next := old.Upcast()
		name, from, _ := splitType(old.EventType())
		same, to, _ := splitType(next.EventType())
		if name != same || to <= from {
			return nil, &DeclarationError{old.EventType(), "upcasts to " + next.EventType() + ", which is not a later version of it"}
		}
		e = next
	}
}

func (r *Registry) unknown(typ string) error {
	name, _, _ := splitType(typ)
	if known := r.names[name]; known != nil {
		return &UnknownVersionError{typ, slices.Clone(known)}
	}
	return &UnknownTypeError{typ}
}

// splitType parts "shop.feira.order.placed.v1" into "shop.feira.order.placed" and 1. ok is false for a type
// that could not be declared; its name is still split off where it ends in ".v" and digits, so that an odd
// version of a known name is not taken for an unknown type.
func splitType(typ string) (name string, version int, ok bool) {
	i := strings.LastIndex(typ, ".v")
	if i <= 0 || i+2 == len(typ) {
		return typ, 0, false
	}
	digits := typ[i+2:]
	if strings.Trim(digits, "0123456789") != "" {
		return typ, 0, false
	}
	version, err := strconv.Atoi(digits)
	return typ[:i], version, err == nil && version > 0 && digits[0] != '0'
}
