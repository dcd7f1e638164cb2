package operator

import (
	"errors"
	"fmt"
)

// HistoryLostError says that records which the operator has not applied are gone from the topic.
type HistoryLostError struct {
	Operator  string
	Topic     string
	Partition int32
	From, To  int64 // offsets: the first record needed, and the first that is still there
}

func (e *HistoryLostError) Error() string {
	return fmt.Sprintf("operator %s: history lost: %s/%d begins at offset %d, but the next record needed is %d; "+
		"fill it with `feira admin fill-gap %s %s all`, or accept the gap with `feira admin accept-gap`",
		e.Operator, e.Topic, e.Partition, e.To, e.From, e.Operator, e.Topic)
}

// TopicReplacedError says that the topic is not the one that the operator has a checkpoint for.
type TopicReplacedError struct {
	Operator  string
	Topic     string
	Partition int32 // -1: the whole topic
	Have      string
	Want      string
}

func (e *TopicReplacedError) Error() string {
	return fmt.Sprintf("operator %s: topic %s was replaced: the checkpoint belongs to %s, but there is %s; "+
		"restore the topic, or begin anew on it with `feira admin accept-gap`",
		e.Operator, e.Topic, e.Want, e.Have)
}

// MissingEventsError says that events are missing in the middle of a partition: a record names a predecessor
// that was never there.
type MissingEventsError struct {
	Operator   string
	Topic      string
	Partition  int32
	Offset     int64 // of the record that shows the hole
	Have, Need int64 // positions in the owner's store: the last one applied, and the predecessor named
}

func (e *MissingEventsError) Error() string {
	return fmt.Sprintf("operator %s: events are missing in %s/%d before offset %d: applied up to position %d, "+
		"but the record follows position %d; fill it with `feira admin fill-gap %s %s all`, or accept the gap with `feira admin accept-gap`",
		e.Operator, e.Topic, e.Partition, e.Offset, e.Have, e.Need, e.Operator, e.Topic)
}

// RejectedError is an error that comes again however often the same event is applied. Made by [Reject].
type RejectedError struct{ Err error }

func (e *RejectedError) Error() string { return e.Err.Error() }
func (e *RejectedError) Unwrap() error { return e.Err }

// Reject marks an error of a handler as deterministic: the event that leads to it is parked, not retried.
// A cancelled context is never deterministic, marked or not.
func Reject(err error) error {
	if err == nil {
		return nil
	}
	return &RejectedError{Err: err}
}

// errStoppedElsewhere ends this member's run because another member stopped the operator by name.
var errStoppedElsewhere = errors.New("operator: another member stopped it")
