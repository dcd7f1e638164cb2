package setup

import (
	"fmt"
	"slices"
	"strings"
)

// environment is the content of an env file: NAME=value lines, in order.
type environment struct{ lines []variable }

type variable struct{ name, value string }

func parse(path, text string) (environment, error) {
	var e environment
	n := 0
	for line := range strings.Lines(text) {
		n++
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		name, value, ok := strings.Cut(line, "=")
		if !ok {
			return e, fmt.Errorf("%s:%d: %q is not NAME=value", path, n, line)
		}
		e.lines = append(e.lines, variable{name, value})
	}
	return e, nil
}

func (e environment) get(name string) string {
	for _, v := range e.lines {
		if v.name == name {
			return v.value
		}
	}
	return ""
}

// set returns a copy with the variable.
func (e environment) set(name, value string) environment {
	lines := slices.Clone(e.lines)
	if i := slices.IndexFunc(lines, func(v variable) bool { return v.name == name }); i >= 0 {
		lines[i].value = value
		return environment{lines}
	}
	return environment{append(lines, variable{name, value})}
}

// only returns a copy with the variables that pick says; nil: all.
func (e environment) only(pick func(name string) bool) environment {
	var lines []variable
	for _, v := range e.lines {
		if pick == nil || pick(v.name) {
			lines = append(lines, v)
		}
	}
	return environment{lines}
}

func (e environment) text() []byte {
	var b strings.Builder
	for _, v := range e.lines {
		b.WriteString(v.name + "=" + v.value + "\n")
	}
	return []byte(b.String())
}
