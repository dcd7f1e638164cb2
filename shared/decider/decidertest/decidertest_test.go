package decidertest

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"runtime"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/feira-shop/feira/shared/decider"
	"github.com/feira-shop/feira/shared/events"
)

// The tally counts what was added, each command once.
type (
	tally struct {
		Sum  int
		Seen map[string]bool
	}
	added struct {
		Command string `json:"command"`
		N       int    `json:"n"`
	}
	add struct {
		id string
		n  int
	}
	limitError struct{ Limit int }
)

func (added) EventType() string { return "shop.feira.test.number.added.v1" }
func (added) EventKey() string  { return "" }

func (e *limitError) Error() string { return fmt.Sprintf("more than %d", e.Limit) }

var errNegative = errors.New("negative")

func decide(s tally, cmd any) ([]events.Event, error) {
	c, ok := cmd.(add)
	switch {
	case !ok:
		return nil, decider.Unknown(cmd)
	case s.Seen[c.id]:
		return nil, nil
	case c.n < 0:
		return nil, fmt.Errorf("add %d: %w", c.n, errNegative)
	case s.Sum+c.n > 100:
		return nil, &limitError{100}
	}
	return events.List(added{c.id, c.n}), nil
}

func evolve(s tally, e events.Event) tally {
	if a, ok := e.(added); ok {
		s.Seen = maps.Clone(s.Seen)
		if s.Seen == nil {
			s.Seen = map[string]bool{}
		}
		s.Seen[a.Command] = true
		s.Sum += a.N
	}
	return s
}

var rules = decider.Decider[tally]{Decide: decide, Evolve: evolve, Shape: 1}

func draw(t *rapid.T, s tally) any {
	return add{id: fmt.Sprint(rapid.IntRange(0, 9).Draw(t, "id")), n: rapid.IntRange(-1, 60).Draw(t, "n")}
}

func TestRulesReadAsSentences(t *testing.T) {
	t.Parallel()
	New(rules).When(add{"a", 1}).Then(t, added{"a", 1})
	New(rules).Given(added{"a", 1}).When(add{"a", 1}).ThenNothing(t)
	New(rules).Given(added{"a", 60}).Given(added{"b", 40}).When(add{"c", 1}).ThenError(t, &limitError{100})
	New(rules).When(add{"a", -1}).ThenError(t, errNegative)
	var unknown *decider.UnknownCommandError
	New(rules).When("add").ThenError(t, &unknown)
	if unknown.Command != "string" {
		t.Errorf("got %q", unknown.Command)
	}
}

// failing records how a test failed.
type failing struct {
	testing.TB
	message string
}

func (f *failing) Helper() {}
func (f *failing) Fatalf(format string, args ...any) {
	f.message = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

func failure(check func(f *failing)) string {
	f := &failing{}
	done := make(chan struct{})
	go func() {
		defer close(done)
		check(f)
	}()
	<-done
	return f.message
}

func TestAWrongExpectationFailsReadably(t *testing.T) {
	t.Parallel()
	spec := New(rules).Given(added{"a", 60})
	for name, c := range map[string]struct {
		check func(f *failing)
		says  []string
	}{
		"other event": {func(f *failing) { spec.When(add{"b", 2}).Then(f, added{"b", 3}) },
			[]string{"given:", `added.v1 {"command":"a","n":60}`, "decidertest.add{id:b n:2}", `-` + " \t  \"n\": 3", `+` + " \t  \"n\": 2"}},
		"nothing happened":          {func(f *failing) { spec.When(add{"a", 2}).Then(f, added{"a", 2}) }, []string{"- ", "added.v1"}},
		"something happened":        {func(f *failing) { spec.When(add{"b", 2}).ThenNothing(f) }, []string{"+ ", "added.v1"}},
		"refused":                   {func(f *failing) { spec.When(add{"b", 50}).ThenNothing(f) }, []string{"refused", "more than 100"}},
		"not refused":               {func(f *failing) { spec.When(add{"b", 5}).ThenError(f, errNegative) }, []string{"accepted", "negative", "added.v1"}},
		"refused for other reasons": {func(f *failing) { spec.When(add{"b", 50}).ThenError(f, errNegative) }, []string{"more than 100", "negative"}},
		"other fields":              {func(f *failing) { spec.When(add{"b", 50}).ThenError(f, &limitError{99}) }, []string{"more than 100", "more than 99"}},
		"nil expected":              {func(f *failing) { spec.When(add{"b", 50}).ThenError(f, nil) }, []string{"more than 100"}},
		"refused with events": {func(f *failing) {
			d := rules
			d.Decide = func(tally, any) ([]events.Event, error) { return events.List(added{"a", 1}), errNegative }
			New(d).When(add{}).ThenError(f, errNegative)
		}, []string{"with events"}},
	} {
		got := failure(c.check)
		for _, part := range c.says {
			if !strings.Contains(got, part) {
				t.Errorf("%s: %q is missing in\n%s", name, part, got)
			}
		}
	}
}

func TestGivenDoesNotShareHistory(t *testing.T) {
	t.Parallel()
	base := New(rules).Given(added{"a", 1})
	one, two := base.Given(added{"b", 1}), base.Given(added{"c", 1})
	one.When(add{"b", 1}).ThenNothing(t)
	two.When(add{"b", 1}).Then(t, added{"b", 1})
}

func TestLawsHold(t *testing.T) {
	t.Parallel()
	Laws(t, rules, draw)
}

// Each broken decider breaks one law, and must be found out.
func TestLawsFindBrokenDeciders(t *testing.T) {
	t.Parallel()
	calls := 0
	for says, d := range map[string]decider.Decider[tally]{
		"repeated": {Evolve: evolve, Decide: func(_ tally, cmd any) ([]events.Event, error) {
			return events.List(added{cmd.(add).id, 1}), nil
		}},
		"changed by Evolve": {Decide: decide, Initial: tally{Seen: map[string]bool{}}, Evolve: func(s tally, e events.Event) tally {
			s.Seen[e.(added).Command] = true
			return s
		}},
		"changed by Decide": {Evolve: evolve, Initial: tally{Seen: map[string]bool{}}, Decide: func(s tally, cmd any) ([]events.Event, error) {
			s.Seen[cmd.(add).id] = true
			return nil, nil
		}},
		"other events": {Evolve: evolve, Decide: func(tally, any) ([]events.Event, error) {
			calls++
			return events.List(added{"a", calls}), nil
		}},
		"it is answered with": {Evolve: evolve, Decide: func(tally, any) ([]events.Event, error) {
			calls++
			return nil, fmt.Errorf("call %d: %w", calls, io.EOF)
		}},
		"and yields events": {Evolve: evolve, Decide: func(tally, any) ([]events.Event, error) {
			return events.List(added{"a", 1}), io.EOF
		}},
		"another state": {Decide: decide, Evolve: func(s tally, e events.Event) tally {
			calls++
			s.Sum = calls
			return s
		}},
	} {
		w := walk[tally]{decider: d, state: d.Initial}
		if err := w.step(add{"a", 1}); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("a decider whose fault is %q passed with %v", says, err)
		}
	}
}

// secret keeps what it needs where JSON does not see it.
type secret struct{ seen bool }

func TestLawsFindStateThatIsNotKept(t *testing.T) {
	t.Parallel()
	w := walk[secret]{decider: decider.Decider[secret]{
		Decide: func(s secret, _ any) ([]events.Event, error) {
			if s.seen {
				return nil, nil
			}
			return events.List(added{"a", 1}), nil
		},
		Evolve: func(secret, events.Event) secret { return secret{true} },
	}}
	first, second := w.step(add{}), w.step(add{})
	if first != nil || second == nil || !strings.Contains(second.Error(), "kept as JSON") {
		t.Errorf("got %v and %v; the second command must find the state lost", first, second)
	}
}
