package jobs

import (
	"errors"
	"fmt"

	"github.com/riverqueue/river/rivertype"
)

// settled is what our workers return: the attempt's row has been written, or must not be. River would set the
// state of whatever attempt of the job is running by then, also one that has taken over. It reads this error as
// the result of a batch of jobs, which is empty, and so writes nothing. Were River to stop knowing such errors,
// it would take it for a failure and retry a job that is still running: slower, not wrong.
type settled struct{}

func (settled) Error() string { return "jobs: the attempt was settled by its worker" }

// ErrorsByID is what River asks an error of several jobs: which job failed with what.
func (settled) ErrorsByID() map[int64]error { return nil }

// Jobs is what River asks an error of several jobs: which jobs it is about.
func (settled) Jobs() []*rivertype.JobRow { return nil }

// panicError is a panic in Do or in the decider.
type panicError struct {
	value any
	stack []byte
}

func (e *panicError) Error() string { return fmt.Sprintf("jobs: panic: %v", e.value) }

// interruptedError is a side effect that was cut short because the process stops: no word about the other side.
type interruptedError struct{ err error }

func (e *interruptedError) Error() string { return "jobs: interrupted: " + e.err.Error() }
func (e *interruptedError) Unwrap() error { return e.err }

// reachedError is an error that the other side answered with, see [Spec.Reached].
type reachedError struct{ err error }

func (e *reachedError) Error() string { return e.err.Error() }
func (e *reachedError) Unwrap() error { return e.err }

// ConfigError lists what is missing or wrong in what [Start] was given.
type ConfigError struct{ Problems []string }

func (e *ConfigError) Error() string {
	return fmt.Sprintf("jobs: cannot start: %v", errors.Join(asErrors(e.Problems)...))
}

func asErrors(texts []string) []error {
	errs := make([]error, len(texts))
	for i, text := range texts {
		errs[i] = errors.New(text)
	}
	return errs
}
