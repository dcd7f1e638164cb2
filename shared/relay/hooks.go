package relay

import "github.com/feira-shop/feira/shared/failpoint"

// point is a place in a batch's life where a test can stop the leader: through [Relay.reached] or, a whole process,
// through [failpoint.At] with the topic's name.
type point string

const (
	beforeSend   point = "relay.before-send"
	afterAck     point = "relay.after-ack" // of the whole batch, or of what was acknowledged of it
	beforeCursor point = "relay.before-cursor"
	afterCursor  point = "relay.after-cursor"
)

// at is a point that the leader passes.
func (r *Relay) at(p point) {
	failpoint.At(string(p), r.opts.Topic.Name)
	if r.reached != nil {
		r.reached(p)
	}
}
