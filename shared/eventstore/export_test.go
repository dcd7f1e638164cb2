package eventstore

// Queued tells tests how many appends wait for a flush, and how many of them in the side lane.
func (s *Store) Queued() (main, side int) { return s.queue.len(), s.side.len() }

// IdleBeforePing is for tests that wait for it.
const IdleBeforePing = idleBeforePing
