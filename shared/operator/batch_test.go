package operator

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"pgregory.net/rapid"

	"github.com/feira-shop/feira/shared/eventstore"
)

// Any batch can be halved down to single records; nothing is lost, doubled or reordered, and each piece's
// checkpoint is where its last record says.
func TestBatchHalvesDownToOne(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		b := drawBatch(t)
		if b.count(applied) == 0 {
			return
		}
		var want []string
		for _, p := range b {
			for _, s := range p.steps {
				want = append(want, fmt.Sprint(p.claim.partition, s.to.next))
			}
		}
		ends := map[*claim]int64{}
		var got []string
		var visit func(b batch)
		visit = func(b batch) {
			if b.count(applied) > 1 {
				first, second := b.halve()
				if first.count(applied) == 0 || second.count(applied) == 0 {
					t.Fatalf("a half is empty: %d and %d of %d", first.count(applied), second.count(applied), b.count(applied))
				}
				visit(first)
				visit(second)
				return
			}
			for _, p := range b {
				if len(p.steps) == 0 || p.to != p.steps[len(p.steps)-1].to {
					t.Fatalf("a part does not end with its last record")
				}
				for _, s := range p.steps {
					got = append(got, fmt.Sprint(p.claim.partition, s.to.next))
				}
				ends[p.claim] = p.to.next
			}
		}
		visit(b)
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Fatalf("got %v, want %v", got, want)
		}
		for _, p := range b {
			if ends[p.claim] != p.to.next {
				t.Fatalf("partition %d ends at %d, want %d", p.claim.partition, ends[p.claim], p.to.next)
			}
		}
	})
}

func drawBatch(t *rapid.T) batch {
	var b batch
	for i := range rapid.IntRange(1, 4).Draw(t, "parts") {
		p := &part{claim: &claim{place: place{"facts", int32(i)}}}
		for j := range rapid.IntRange(1, 12).Draw(t, "records") {
			f := rapid.SampledFrom([]fate{applied, applied, filtered, duplicate, parking}).Draw(t, "fate")
			p.to = position{next: int64(j + 1)}
			p.steps = append(p.steps, step{item: &item{}, fate: f, to: p.to})
		}
		b = append(b, p)
	}
	return b
}

func TestRecordsOfAParkedKeyWait(t *testing.T) {
	t.Parallel()
	keyed := func(key string, f fate) step {
		return step{item: &item{raw: raw{key: []byte(key)}, order: key}, fate: f}
	}
	c := &claim{blocked: map[string]int{"old": 1}}
	p := &part{claim: c, steps: []step{
		keyed("old", applied), keyed("free", applied), keyed("new", parking), keyed("new", applied), keyed("new", filtered),
		keyed("", parking), keyed("", applied), keyed("old", duplicate),
	}}
	batch{p}.blocks()
	want := []fate{parking, applied, parking, parking, filtered, parking, applied, duplicate}
	for i, s := range p.steps {
		if s.fate != want[i] {
			t.Errorf("record %d: fate %v, want %v", i, s.fate, want[i])
		}
	}
	if r := p.steps[0].reason; r != reasonWaiting {
		t.Errorf("reason %q", r)
	}
}

func TestErrorsAreClassified(t *testing.T) {
	t.Parallel()
	pg := func(code string) error { return fmt.Errorf("apply: %w", &pgconn.PgError{Code: code}) }
	tests := map[class][]error{
		deterministic: {
			Reject(errors.New("no such product")), fmt.Errorf("wrapped: %w", Reject(errors.New("x"))),
			pg("23505"), pg("22003"), &eventstore.TooLargeError{}, &eventstore.InvalidError{}, &eventstore.ArchivedError{},
		},
		transient: {
			context.Canceled, context.DeadlineExceeded, Reject(context.Canceled), Reject(fmt.Errorf("x: %w", context.DeadlineExceeded)),
			pg("40P01"), pg("55P03"), pg("57P01"), pg("53300"), pg("42P01"), pg("FE001"),
			&pgconn.PgError{Code: "23514", TableName: "events"}, // there is no part yet
			&eventstore.ConflictError{}, eventstore.ErrUnknown, errors.New("whatever"), errNotNow,
		},
		tooLong: {pg("25P03"), pg("57014")},
	}
	for want, errs := range tests {
		for _, err := range errs {
			if got := classify(err); got != want {
				t.Errorf("%v: class %d, want %d", err, got, want)
			}
		}
	}
	if Reject(nil) != nil {
		t.Error("rejecting nothing is nothing")
	}
}
