package main_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/feira-shop/feira/docs"
)

// exercised are the calls of the program that did their work, as the tests of this package made them: to the end, or
// far enough to have something to show (a replay of which a record fails again).
var exercised struct {
	sync.Mutex
	calls [][]string
}

func noteCall(args []string) {
	exercised.Lock()
	defer exercised.Unlock()
	exercised.calls = append(exercised.calls, slices.DeleteFunc(slices.Clone(args), func(a string) bool { return strings.HasPrefix(a, "--env-file") }))
}

// instructed is a command of the runbook.
type instructed struct {
	path  string   // "admin parked replay"
	flags []string // "--key"
}

// words of a command's path, as against its arguments: there they are upper case, or have a dot or a digit.
var word = regexp.MustCompile(`^[a-z]+(-[a-z]+)*$`)

// instructions are the commands of the runbook, each once. Its tables and sentences have them in backticks, its blocks
// on lines of their own.
func instructions(runbook string) []instructed {
	var all []instructed
	seen := map[string]bool{}
	for _, match := range regexp.MustCompile("`feira ([^`]+)`|(?m:^feira (.+)$)").FindAllStringSubmatch(runbook, -1) {
		line, _, _ := strings.Cut(match[1]+match[2], "#") // a comment
		var c instructed
		var path []string
		for i, w := range strings.Fields(line) {
			switch {
			case strings.HasPrefix(w, "--"):
				flag, _, _ := strings.Cut(w, "=")
				c.flags = append(c.flags, flag)
			case word.MatchString(w) && i == len(path) && isCommand(append(path, w)):
				path = append(path, w)
			}
		}
		c.path = strings.Join(path, " ")
		if key := c.path + " " + strings.Join(c.flags, " "); !seen[key] {
			seen[key] = true
			all = append(all, c)
		}
	}
	return all
}

// isCommand tells commands from their arguments: the names of services and operators' actions are words, too.
func isCommand(path []string) bool {
	switch path[0] {
	case "admin":
		return len(path) <= 2 || len(path) == 3 && path[1] == "parked"
	default:
		return len(path) == 1
	}
}

// A command that people are told to give has to be there, with the flags it is told to be given with.
func TestTheRunbooksCommandsAreThere(t *testing.T) {
	t.Parallel()
	all := instructions(docs.Runbook)
	if len(all) < 15 {
		t.Fatalf("only %d commands were found in the runbook: %v", len(all), all)
	}
	for _, c := range all {
		help := call(t, nil, append(strings.Fields(c.path), "--help")...).ok(t)
		for _, flag := range c.flags {
			if !regexp.MustCompile(regexp.QuoteMeta(flag) + `[^a-z-]`).MatchString(help) {
				t.Errorf("feira %s has no flag %s", c.path, flag)
			}
		}
	}
}

// unexercised lists the commands of the runbook that no test of this package gave.
func unexercised() error {
	exercised.Lock()
	defer exercised.Unlock()
	var missing []string
	for _, c := range instructions(docs.Runbook) {
		path := strings.Fields(c.path)
		given := slices.ContainsFunc(exercised.calls, func(args []string) bool {
			return len(args) >= len(path) && slices.Equal(args[:len(path)], path) && !slices.Contains(args, "--help") &&
				!slices.ContainsFunc(c.flags, func(flag string) bool {
					return !slices.ContainsFunc(args, func(a string) bool { return a == flag || strings.HasPrefix(a, flag+"=") })
				})
		})
		if !given {
			missing = append(missing, "feira "+c.path+" "+strings.Join(c.flags, " "))
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return fmt.Errorf("docs/runbook.md has commands that no test gives: %s", strings.Join(missing, "; "))
}
