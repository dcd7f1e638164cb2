package events

import (
	"fmt"
	"time"

	"github.com/google/uuid"
)

// Answering is the metadata of whatever follows from an event, but for id, time and actor: the same story,
// caused by it.
func Answering(cause Recorded) Meta {
	m := Meta{Correlation: cause.Correlation, Causation: cause.ID, Traceparent: cause.Traceparent}
	if m.Correlation == "" {
		m.Correlation = cause.ID
	}
	return m
}

// Timestamp is a time as events carry it: UTC, in microseconds, which is what Postgres and most readers keep. So what
// was written equals what is read back.
func Timestamp(t time.Time) time.Time { return t.UTC().Truncate(time.Microsecond) }

// Reply is the metadata of an event that answers another: a new id, the same story.
func Reply(cause Recorded, actor string, now time.Time) (Meta, error) {
	id, err := uuid.NewV7()
	if err != nil {
		return Meta{}, fmt.Errorf("make an event id: %w", err)
	}
	m := Answering(cause)
	m.ID, m.Time, m.Actor = id.String(), Timestamp(now), actor
	return m, nil
}
