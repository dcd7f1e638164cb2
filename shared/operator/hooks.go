package operator

import "errors"

// failpoint is a place in a batch's life where a test can take the process away.
type failpoint string

const (
	beforeBegin  failpoint = "before begin"
	afterApply   failpoint = "after apply"
	beforeCommit failpoint = "before commit"
	afterCommit  failpoint = "after commit, before mark"
	afterMark    failpoint = "after mark"
)

// errKilled makes the operator vanish at a failpoint as if its process had been killed.
var errKilled = errors.New("operator: killed by a test")

// hooks let tests stop an operator at named points or take a protection away. They are zero in production.
type hooks struct {
	reached     func(failpoint) error
	dead        func() bool // the process was killed: leave nothing in order
	keepSession bool        // mutant: a fenced claim's session goes on
}

func (h hooks) at(p failpoint) error {
	if h.reached == nil {
		return nil
	}
	return h.reached(p)
}

func (h hooks) killed() bool { return h.dead != nil && h.dead() }
