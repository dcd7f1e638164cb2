package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// mutant takes a protection out: in File, the text Old becomes New. The test must then fail.
type mutant struct {
	Protection string // what is taken out
	File       string
	Old, New   string // Old occurs once in File
	test              // that notices
}

func (m mutant) name() string { return "mutant: without " + m.Protection }

func (m mutant) program(p programs) string {
	return p.of(m.test) + "\n" + m.File + "\n" + m.Old + "\n" + m.New
}

// run runs the test with the changed file in its place. It is good when the test fails; a program that does not
// compile proves nothing.
func (m mutant) run(ctx context.Context, b *book) result {
	overlay, err := m.overlay(b.dir)
	if err != nil {
		return result{Said: err.Error()}
	}
	r := b.goTest(ctx, m.test, []string{"GOFLAGS=-overlay=" + overlay}) // for the programs, too, that the test builds
	r.Good = r.Failed
	if !r.Good {
		r.Said = fmt.Sprintf("%s did not notice that %s is missing:\n%s", m.test.name(), m.Protection, r.Said)
	}
	return r
}

// apply gives the file's text without the protection.
func (m mutant) apply() (string, error) {
	raw, err := os.ReadFile(m.File)
	if err != nil {
		return "", err
	}
	if n := strings.Count(string(raw), m.Old); n != 1 {
		return "", fmt.Errorf("%s: %q is there %d times, expected once: the mutant has to follow the program", m.File, m.Old, n)
	}
	return strings.Replace(string(raw), m.Old, m.New, 1), nil
}

// overlay writes the changed file and the overlay that puts it in the place of the original.
func (m mutant) overlay(dir string) (string, error) {
	text, err := m.apply()
	if err != nil {
		return "", err
	}
	base := filepath.Join(dir, "overlay-"+slug(m.Protection))
	original, err := filepath.Abs(m.File)
	if err != nil {
		return "", err
	}
	changed, err := filepath.Abs(base + ".mutant") // not .go: it is no file of the module
	if err != nil {
		return "", err
	}
	raw, err := json.Marshal(map[string]map[string]string{"Replace": {original: changed}})
	if err != nil {
		return "", err
	}
	if err := os.WriteFile(changed, []byte(text), 0o600); err != nil {
		return "", err
	}
	overlay, err := filepath.Abs(base + ".json")
	if err != nil {
		return "", err
	}
	return overlay, os.WriteFile(overlay, raw, 0o600)
}

// slug makes a file name of a text.
func slug(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '.' {
			return r
		}
		return '-'
	}, s)
}
