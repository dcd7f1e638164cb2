package operator

import (
	"errors"

	"github.com/feira-shop/feira/shared/failpoint"
)

// point is a place in a batch's life where a test can take the process away: the operator in this process through
// [hooks], a whole process through [failpoint.At], with the operator's name.
type point string

const (
	beforeBegin  point = "operator.before-begin"
	afterApply   point = "operator.after-apply"
	beforeCommit point = "operator.before-commit"
	afterCommit  point = "operator.after-commit" // and before the mark
	afterMark    point = "operator.after-mark"

	beforeClosing point = "operator.before-closing" // something was found to close
	afterClosing  point = "operator.after-closing"  // and committed, and nothing in this process knows
)

// errKilled makes the operator vanish at a point as if its process had been killed.
var errKilled = errors.New("operator: killed by a test")

// hooks let tests stop an operator at named points. They are zero in production.
type hooks struct {
	reached func(point) error
	dead    func() bool // the process was killed: leave nothing in order
}

// at is a point that the operator passes.
func (h hooks) at(p point, operator string) error {
	failpoint.At(string(p), operator)
	if h.reached == nil {
		return nil
	}
	return h.reached(p)
}

func (h hooks) killed() bool { return h.dead != nil && h.dead() }
