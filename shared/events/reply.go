package events

import (
	"fmt"
	"time"

	"github.com/google/uuid"
)

// Reply is the meta data of an event that answers another: a new id, the same story.
func Reply(cause Recorded, actor string, now time.Time) (Meta, error) {
	id, err := uuid.NewV7()
	if err != nil {
		return Meta{}, fmt.Errorf("make an event id: %w", err)
	}
	correlation := cause.Correlation
	if correlation == "" {
		correlation = cause.ID
	}
	return Meta{
		ID: id.String(), Time: now.UTC(), Correlation: correlation, Causation: cause.ID,
		Traceparent: cause.Traceparent, Actor: actor,
	}, nil
}
