package eventstore

// Committed tells relay and watchers in this process that new events may be there. The store calls it after
// its own commits; the operator loop calls it after its.
func (s *Store) Committed() { s.committed(nil) }

func (s *Store) committed(queues []string) {}

// queuesOf lists the River queues for which requests insert jobs.
func queuesOf(appends []Append) []string {
	var queues []string
	for i := range appends {
		for j := range appends[i].Jobs {
			queues = append(queues, appends[i].Jobs[j].Queue)
		}
	}
	return queues
}

// Wake returns a channel that receives after commits, in this process or (by NOTIFY) in another. For the relay.
func (s *Store) Wake() <-chan struct{} { return nil }

// Watch returns a channel that receives whenever the stream may have new events, from any process.
// The caller must call stop.
func (s *Store) Watch(stream string) (changed <-chan struct{}, stop func()) {
	return nil, func() {}
}
