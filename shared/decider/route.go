package decider

import "github.com/feira-shop/feira/shared/events"

// Route says what an event means to an aggregate: a command for a stream. Made by [On].
type Route struct {
	Type  string // event type heard
	Route func(r events.Recorded) (stream string, cmd any)
}

// On routes events of type E. An empty stream means: not for us.
func On[E events.Event](f func(E) (stream string, cmd any)) Route {
	return OnRecorded(func(_ events.Recorded, e E) (string, any) { return f(e) })
}

// OnRecorded is [On] for those who need the event's id or time too.
func OnRecorded[E events.Event](f func(r events.Recorded, e E) (stream string, cmd any)) Route {
	var prototype E
	return Route{
		Type: prototype.EventType(),
		Route: func(r events.Recorded) (string, any) {
			e, ok := r.Event.(E)
			if !ok {
				return "", nil
			}
			return f(r, e)
		},
	}
}
