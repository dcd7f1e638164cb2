package operator

import "sync/atomic"

// Points are where a test can take an operator with windows away.
func Points() []string {
	return []string{
		string(beforeBegin), string(afterApply), string(beforeCommit), string(afterCommit), string(afterMark),
		string(beforeClosing), string(afterClosing),
	}
}

// KillAt has an operator vanish, as if its process was killed, when it passes a point for the nth time. The channel is
// closed then.
func (o *Operator) KillAt(name string, nth int64) <-chan struct{} {
	var passed atomic.Int64
	var dead atomic.Bool
	killed := make(chan struct{})
	o.hooks.dead = dead.Load
	o.hooks.reached = func(p point) error {
		if dead.Load() {
			return errKilled
		}
		if string(p) == name && passed.Add(1) == nth {
			dead.Store(true)
			close(killed)
			return errKilled
		}
		return nil
	}
	return killed
}

// HoldAt has an operator wait when it first passes a point, until resume is closed. reached is closed then.
func (o *Operator) HoldAt(name string) (reached <-chan struct{}, resume chan<- struct{}) {
	here, goOn := make(chan struct{}), make(chan struct{})
	var passed atomic.Int64
	o.hooks.reached = func(p point) error {
		if string(p) == name && passed.Add(1) == 1 {
			close(here)
			<-goOn
		}
		return nil
	}
	return here, goOn
}
