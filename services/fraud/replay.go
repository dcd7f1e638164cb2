package fraud

import (
	"time"

	"github.com/feira-shop/feira/shared/events"
)

// skew is how far a purchase may be after the time at which its payment was recorded; beyond that its time cannot be
// true.
const skew = time.Minute

// Replay judges the payments of a store anew, in the order of their positions, which for one card is that of their
// offsets. It remembers everything, and needs no watermarks.
type Replay struct {
	judge Judge
	cards map[string]Profile
}

// NewReplay begins with no card known.
func NewReplay(judge Judge) *Replay {
	return &Replay{judge: judge, cards: map[string]Profile{}}
}

// Apply is what follows from an event. late: its verdict says that it came too late to be judged, which only the
// operator's watermark could tell.
func (p *Replay) Apply(r events.Recorded, late bool) []events.Event {
	said, keep := p.apply(r, late)
	if keep != nil {
		p.cards[Key(purchase(r))] = *keep
	}
	return said
}

func (p *Replay) apply(r events.Recorded, late bool) ([]events.Event, *Profile) {
	about := purchase(r)
	key := Key(about)
	if key == "" {
		return nil, nil
	}
	if !r.RecordedAt.IsZero() && about.PurchasedAt.Sub(r.RecordedAt) > skew {
		_, said := p.judge.Apply(Profile{}, r, true)
		return said, nil
	}
	next, said := p.judge.Apply(p.cards[key], r, late)
	return said, &next
}

// Features are what a model sees of an authorised payment, which is then applied. ok: it is one of a named card, and in
// time.
func (p *Replay) Features(r events.Recorded) (f Features, said []events.Event, ok bool) {
	e, ok := r.Event.(events.PaymentAuthorized)
	before := p.cards[Key(purchase(r))]
	said = p.Apply(r, false)
	if !ok || e.CardFingerprint == "" || len(said) == 0 {
		return f, said, false
	}
	bought := purchaseOf(e.Purchase)
	m := measure(before.as(bought.At, p.judge.Forget), bought, e.Amount.Currency)
	return m.features(), said, true
}
