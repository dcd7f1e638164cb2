package decidertest

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/feira-shop/feira/shared/decider"
	"github.com/feira-shop/feira/shared/events"
)

// Spec is a rule of a decider in the making: what has happened so far.
type Spec[S any] struct {
	decider decider.Decider[S]
	history []events.Event
}

// New begins a rule: nothing has happened yet.
func New[S any](d decider.Decider[S]) Spec[S] { return Spec[S]{decider: d} }

// Given adds what has happened. It may be called more than once.
func (s Spec[S]) Given(history ...events.Event) Spec[S] {
	s.history = append(s.history[:len(s.history):len(s.history)], history...)
	return s
}

// When decides a command in the state that follows from what has happened.
func (s Spec[S]) When(cmd any) Decision {
	got, err := s.decider.Decide(s.decider.Fold(s.history), cmd)
	return Decision{given: s.history, cmd: cmd, got: got, err: err}
}

// Decision is what a decider answered.
type Decision struct {
	given []events.Event
	cmd   any
	got   []events.Event
	err   error
}

// Then expects exactly these events, in this order. Events are compared as the JSON that would be published.
func (d Decision) Then(tb testing.TB, want ...events.Event) {
	tb.Helper()
	if d.err != nil {
		tb.Fatalf("%s\nthen: refused, but events were expected\n\t%v", d.story(), d.err)
	}
	got, expected := lines(d.got), lines(want)
	if !reflect.DeepEqual(got, expected) {
		tb.Fatalf("%s\nthen (- wanted, + got):\n%s", d.story(), diff(expected, got))
	}
}

// ThenNothing expects that the command is accepted and changes nothing.
func (d Decision) ThenNothing(tb testing.TB) {
	tb.Helper()
	d.Then(tb)
}

// ThenError expects that the command is refused. target is an error, met as [errors.Is] does or by an error of
// its type with equal fields, or a pointer to a variable of an error type, which is set as by [errors.As].
func (d Decision) ThenError(tb testing.TB, target any) {
	tb.Helper()
	switch {
	case d.err == nil:
		tb.Fatalf("%s\nthen: accepted, but an error was expected (%v)\n%s", d.story(), target, strings.Join(lines(d.got), "\n"))
	case len(d.got) > 0:
		tb.Fatalf("%s\nthen: refused (%v), but with events:\n%s", d.story(), d.err, strings.Join(lines(d.got), "\n"))
	case !matches(d.err, target):
		tb.Fatalf("%s\nthen: refused with\n\t%T: %v\nbut this was expected:\n\t%T: %v", d.story(), d.err, d.err, target, target)
	}
}

func matches(err error, target any) bool {
	want, ok := target.(error)
	if !ok {
		kind := reflect.TypeOf(target)
		return kind != nil && kind.Kind() == reflect.Pointer && errors.As(err, target)
	}
	if errors.Is(err, want) {
		return true
	}
	same := reflect.New(reflect.TypeOf(want))
	return errors.As(err, same.Interface()) && reflect.DeepEqual(same.Elem().Interface(), want)
}

func (d Decision) story() string {
	given := "nothing"
	if len(d.given) > 0 {
		var short []string
		for _, e := range d.given {
			short = append(short, "\t"+compact(e))
		}
		given = "\n" + strings.Join(short, "\n")
	}
	return fmt.Sprintf("\ngiven: %s\nwhen:\n\t%T%+v", given, d.cmd, d.cmd)
}
