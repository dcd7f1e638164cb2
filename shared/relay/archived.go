package relay

import (
	"context"
	"fmt"

	"github.com/feira-shop/feira/shared/eventstore"
)

// readable says whether everything after the cursor can be read. What is archived was published before, so it cannot
// only after somebody has set the cursor back, to publish the store anew.
func (l *leader) readable(ctx context.Context) error {
	var last int64
	if err := l.row(ctx, []any{&last}, "select es_archived()"); err != nil {
		return fmt.Errorf("relay: ask what is archived: %w", err)
	}
	return archived(l.relay.opts.Topic.Owner, l.position, last)
}

// archived is nil unless events after a position are archived.
func archived(service string, after, last int64) error {
	if after >= last {
		return nil
	}
	return &eventstore.ArchivedError{Service: service, After: after, Last: last}
}
