package operator

import (
	"context"
	_ "embed"
	"errors"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

//go:embed queries/report_trials.sql
var reportTrialsSQL string

// Outcomes of a trial: what a replay would come to for a record.
const (
	OutcomeApplied  = "applied"     // it would be applied
	OutcomePassed   = "passed over" // it would be taken out without effect: the operator does not want its type
	OutcomeRejected = "rejected"    // it would be refused again, and stay parked
	OutcomeBlocked  = "blocked"     // it would go on waiting behind another one of its key
	OutcomeHeldUp   = "held up"     // it would be tried again and again, and nothing else be done: its error is none of its own
)

const (
	// codeRehearsed is raised by op_rehearse in the place of a commit.
	codeRehearsed = "FE009"
	// trialTries is how often a rehearsal meets an error that may pass before it counts as an answer.
	trialTries = 3
	// trialTime bounds a trial: the operator does nothing else meanwhile.
	trialTime = 3 * time.Second
)

// trial finds out what a replay would come to. It has the handler apply the records, in transactions that end in an
// exception instead of a commit; so the answer is that of the release, the settings and the memory that a replay meets.
type trial struct {
	*errand
	until    time.Time
	good     []*item          // would be applied; each further record is tried behind them
	front    map[string]int64 // of keys of which a record would fail: its offset
	offsets  []int64
	outcomes []string
	details  []string
}

// try answers a request for a trial. False means: not now, look again later.
func (s *errand) try(ctx context.Context) bool {
	items, err := s.next(ctx)
	if err != nil {
		s.op.log.Warn("parked records could not be read", "error", err)
		return false
	}
	t := &trial{errand: s, until: time.Now().Add(trialTime), front: map[string]int64{}}
	return t.work(ctx, items) && t.report(ctx)
}

// work tries records as [errand.replay] would apply them.
func (t *trial) work(ctx context.Context, items []*item) bool {
	fit := make([]*item, 0, len(items))
	for _, it := range items {
		front, blocked := t.front[it.order]
		switch {
		case blocked && it.order != "":
			t.say(it, OutcomeBlocked, "behind "+t.placeOf(front))
		case it.fate == parking && it.reason == reasonWaiting:
			t.say(it, OutcomeBlocked, it.problem)
		case it.fate == parking:
			t.fails(it, OutcomeRejected, it.problem)
		default:
			fit = append(fit, it)
		}
	}
	if len(fit) == 0 || time.Now().After(t.until) {
		return true
	}
	err := t.rehearse(ctx, append(slices.Clip(t.good), fit...))
	switch {
	case err == nil:
		t.fit(fit)
	case errors.Is(err, errNotNow):
		return false
	case len(fit) > 1:
		half := len(fit) / 2
		return t.work(ctx, fit[:half]) && t.work(ctx, fit[half:])
	case classify(err) == deterministic:
		t.fails(fit[0], OutcomeRejected, err.Error())
	default:
		t.fails(fit[0], OutcomeHeldUp, err.Error())
	}
	return true
}

func (t *trial) fit(items []*item) {
	t.good = append(t.good, items...)
	for _, it := range items {
		if it.fate == applied {
			t.say(it, OutcomeApplied, "")
		} else {
			t.say(it, OutcomePassed, "the operator does not take its type")
		}
	}
}

func (t *trial) fails(it *item, outcome, why string) {
	if it.order != "" {
		t.front[it.order] = it.rec.Offset
	}
	t.say(it, outcome, why)
}

func (t *trial) say(it *item, outcome, detail string) {
	t.offsets = append(t.offsets, it.rec.Offset)
	t.outcomes = append(t.outcomes, outcome)
	t.details = append(t.details, printable(detail))
}

// rehearse is nil when the records would be applied together. Errors that may pass are met a few times before they
// are taken for the answer; [errNotNow] when the claim is lost or the operator stops.
func (t *trial) rehearse(ctx context.Context, items []*item) error {
	wait := backoff{}
	for try := 1; ; try++ {
		err := t.rehearseOnce(ctx, items)
		if err == nil {
			return nil
		}
		// Before the error is looked at: a frozen owner that wakes meets its successor's rows.
		lctx, cancel := t.attemptContext(ctx)
		outcome, unread := t.look(lctx, batch{{claim: t.claim, to: t.claim.saved}}, false)
		cancel()
		if unread != nil || outcome != outcomeRolledBack || t.claim.dead() {
			return errNotNow
		}
		if classify(err) != transient || try == trialTries {
			return err
		}
		if !wait.sleep(ctx) {
			return errNotNow
		}
	}
}

func (t *trial) rehearseOnce(ctx context.Context, items []*item) error {
	ctx, cancel := t.attemptContext(ctx)
	defer cancel()
	p := &part{claim: t.claim, to: t.claim.saved}
	for _, it := range items {
		p.steps = append(p.steps, step{item: it, fate: it.fate, to: p.to})
	}
	tx, err := t.op.store.BeginIn(ctx, t.op.pool)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	defer t.settle(false)
	if records := (batch{p}).records(); len(records) > 0 {
		t.unsettled = t.op.stateful != nil
		if err := t.apply(ctx, tx, records); err != nil {
			return err
		}
	}
	t.write(tx, change{gone: items, apply: true})
	err = tx.Commit(ctx, "op_rehearse", batch{p}.checkpoints(t.op.def.Name)...)
	var raised *pgconn.PgError
	if errors.As(err, &raised) && raised.Code == codeRehearsed {
		return nil
	}
	return err
}

// report hands the answers to whoever asked.
func (t *trial) report(ctx context.Context) bool {
	ctx, cancel := t.attemptContext(ctx)
	defer cancel()
	_, err := t.op.pool.Exec(ctx, reportTrialsSQL, t.request.ID, t.offsets, t.outcomes, t.details)
	return err == nil
}
