package operator

import (
	"context"
	"sync"
	"time"

	"github.com/IBM/sarama"

	"github.com/feira-shop/feira/shared/kafka"
)

// run is an operator from a start to a stop. All that a stop must forget lives here.
type run struct {
	op      *Operator
	client  sarama.Client // for metadata and offsets; each group has one of its own
	claims  *claims
	control *control
	wake    chan struct{}
	fail    func(error) // ends the run with a reason
	members []*membership

	mu        sync.Mutex
	topicIDs  map[string]string // as the sessions found them
	suspended map[string]bool   // topics that look replaced
}

// kick has the loop look at its claims.
func (r *run) kick() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

func (r *run) joined(topic string) {
	r.op.mu.Lock()
	defer r.op.mu.Unlock()
	r.op.waiting[topic] = false
}

func (r *run) idOf(topic string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.topicIDs[topic]
}

func (r *run) setID(topic, id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.topicIDs[topic] = id
	delete(r.suspended, topic)
}

func (r *run) suspend(topic string, yes bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.suspended[topic] && !yes {
		defer r.kick()
	}
	r.suspended[topic] = yes
}

// takeable are the claims that may be taken from.
func (r *run) takeable() []*claim {
	all := r.claims.sorted()
	r.mu.Lock()
	defer r.mu.Unlock()
	kept := all[:0]
	for _, c := range all {
		if !r.suspended[c.topic] {
			kept = append(kept, c)
		}
	}
	return kept
}

// runOnce consumes until ctx ends or the operator stops by name; then it returns why.
func (o *Operator) runOnce(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	r := &run{
		op: o, claims: newClaims(), wake: make(chan struct{}, 1), fail: func(err error) { cancel(err) },
		topicIDs: map[string]string{}, suspended: map[string]bool{},
	}
	r.control = newControl(r)
	if !r.connect(ctx) {
		return context.Cause(ctx)
	}
	o.mu.Lock()
	o.current = r
	o.mu.Unlock()

	// The groups outlive ctx: the loop finishes its transaction before the claims are given up.
	group, leave := context.WithCancel(context.WithoutCancel(ctx))
	defer leave()
	var consumers, helpers sync.WaitGroup
	for _, t := range o.def.Topics {
		m := &membership{run: r, topic: t}
		r.members = append(r.members, m)
		consumers.Go(func() { m.consume(group) })
	}
	helpers.Go(func() { r.guard(ctx) })
	helpers.Go(func() { r.control.watch(ctx) })
	if len(o.def.Idle) > 0 && o.stateful != nil {
		helpers.Go(func() { r.watchIdle(ctx) })
	}
	newLoop(r).work(ctx)
	leave()
	r.close(&consumers, &helpers)
	return context.Cause(ctx)
}

// connect retries until Kafka answers; false when ctx ended first.
func (r *run) connect(ctx context.Context) bool {
	type result struct {
		client sarama.Client
		err    error
	}
	wait := backoff{}
	for {
		got := make(chan result, 1)
		go func() { // it may take long, and takes no context
			client, err := kafka.NewClient(r.op.opts.Kafka)
			got <- result{client, err}
		}()
		select {
		case res := <-got:
			if res.err == nil {
				r.client = res.client
				return true
			}
			r.op.log.Warn("no connection to Kafka yet", "error", res.err)
		case <-ctx.Done():
			go func() {
				if res := <-got; res.err == nil {
					_ = res.client.Close()
				}
			}()
			return false
		}
		if !wait.sleep(ctx) {
			return false
		}
	}
}

// close leaves the groups, bounded in time: a broker that does not answer must not hold up the process. What is
// still open then ends with its own timeouts.
func (r *run) close(consumers, helpers *sync.WaitGroup) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		consumers.Wait()
		for _, m := range r.members {
			if r.op.hooks.killed() {
				break // as a killed process, which leaves nothing behind but its name
			}
			if err := m.leave(r.client); err != nil {
				r.op.log.Debug("the group was not left", "topic", m.topic.Name, "error", err)
			}
		}
		_ = r.client.Close()
		helpers.Wait()
	}()
	timer := time.NewTimer(r.op.timing.giveUp)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
		r.op.log.Warn("the consumer groups were not left in time")
	}
}
