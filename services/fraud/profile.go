package fraud

import (
	"time"

	"github.com/feira-shop/feira/shared/events"
)

// Window is how far apart two purchases must be not to be taken for a double click: 5.000 s is far enough.
const Window = 5 * time.Second

// maxRecent bounds the purchases that are remembered one by one; of more, the newest by event time. So a duplicate is
// missed only on a card with more than fifty purchases a second.
const maxRecent = 256

// Profile is all that is remembered of a card. A Profile never changes: what makes another of it copies what differs,
// since the state before must stay as it was until the batch is committed.
//
// Late events are remembered as purchases and sums, so that what is compared with them finds them; Amounts, First and
// Last are of those in time only. So a profile that was forgotten, or not yet, makes no difference to a verdict.
type Profile struct {
	Recent  Purchases `json:"r,omitempty"`
	Minute  Buckets   `json:"m,omitempty"` // of 5 seconds
	Hour    Buckets   `json:"h,omitempty"` // of a minute
	Amounts []Amounts `json:"a,omitempty"` // one for each currency
	First   int64     `json:"f,omitempty"` // event time of the earliest purchase, nanoseconds since 1970; 0: none is known
	Last    int64     `json:"l,omitempty"` // of the latest
}

// Purchases are the recent authorised payments of one card, in the order of their offsets.
type Purchases []Purchase

// Purchase is what must be remembered of a payment.
type Purchase struct {
	Payment  ID       `json:"p"`
	Order    ID       `json:"o"`
	At       int64    `json:"t"` // event time, when the order was placed: nanoseconds since 1970
	Amount   int64    `json:"a"`
	Currency Currency `json:"c"`
}

func purchaseOf(p events.Purchase) Purchase {
	return Purchase{
		Payment: idOf(p.Payment), Order: idOf(p.Order), At: nanos(p.PurchasedAt), Amount: p.Amount.Amount, Currency: currencyOf(p.Amount.Currency),
	}
}

// lastSecond is the end of what counts as time, in the year 2200: far beyond every clock, and far below the limits of 64
// bits.
const lastSecond = 7_258_118_400

// nanos are since 1970; what is before counts as 1970.
func nanos(t time.Time) int64 {
	switch s := t.Unix(); {
	case s < 0:
		return 0
	case s >= lastSecond:
		return lastSecond * int64(time.Second)
	}
	return t.UnixNano()
}

// near finds the first remembered purchase of the same amount less than Window away.
func (ps Purchases) near(p Purchase) (Purchase, bool) {
	for i := range ps {
		q := &ps[i]
		d := p.At - q.At
		if -int64(Window) < d && d < int64(Window) && q.Amount == p.Amount && q.Currency == p.Currency {
			return *q, true
		}
	}
	return Purchase{}, false
}

func (ps Purchases) has(payment ID) bool {
	for i := range ps {
		if ps[i].Payment == payment {
			return true
		}
	}
	return false
}

func (ps Purchases) with(p Purchase) Purchases {
	c := make(Purchases, len(ps), len(ps)+1)
	copy(c, ps)
	c = append(c, p)
	if len(c) <= maxRecent {
		return c
	}
	oldest := 0
	for i := range c {
		if c[i].At < c[oldest].At {
			oldest = i
		}
	}
	return append(c[:oldest], c[oldest+1:]...)
}

func (ps Purchases) without(payment ID) Purchases {
	return ps.only(func(p *Purchase) bool { return p.Payment != payment })
}

// only keeps some; what keeps all copies nothing.
func (ps Purchases) only(keep func(*Purchase) bool) Purchases {
	left := 0
	for i := range ps {
		if keep(&ps[i]) {
			left++
		}
	}
	switch left {
	case len(ps):
		return ps
	case 0:
		return nil
	}
	c := make(Purchases, 0, left)
	for i := range ps {
		if keep(&ps[i]) {
			c = append(c, ps[i])
		}
	}
	return c
}

// knows reports whether a card was seen in time and not forgotten until then.
func (c Profile) knows(at int64, forget time.Duration) bool {
	return c.Last != 0 && at <= c.Last+int64(forget)
}

// as is the profile as a purchase at that time finds it: without what was forgotten before.
func (c Profile) as(at int64, forget time.Duration) Profile {
	if !c.knows(at, forget) {
		c.Amounts, c.First, c.Last = nil, 0, 0
	}
	return c
}

// with remembers a purchase.
func (c Profile) with(p Purchase, late bool) Profile {
	c.Recent = c.Recent.with(p)
	room := make(Buckets, len(c.Minute)+len(c.Hour)+2) // one allocation for both
	c.Minute, room = c.Minute.with(p, quick, room)
	c.Hour, _ = c.Hour.with(p, slow, room)
	if late {
		return c
	}
	c.Amounts = learn(c.Amounts, p.Currency, p.Amount)
	if c.First == 0 || p.At < c.First {
		c.First = p.At
	}
	c.Last = max(c.Last, p.At)
	return c
}

// without forgets a purchase that was voided. What is known of the card's amounts stays: they are what is usual.
func (c Profile) without(p Purchase) Profile {
	c.Recent = c.Recent.without(p.Payment)
	c.Minute = c.Minute.without(p, quick)
	c.Hour = c.Hour.without(p, slow)
	return c
}

// Until is the event time up to which the profile matters to others; zero when it never does.
func (c Profile) Until(forget time.Duration) time.Time {
	var last int64
	if c.Last != 0 {
		last = c.Last + int64(forget)
	}
	last = max(last, c.purchased(), c.Minute.until(quick), c.Hour.until(slow))
	if last == 0 {
		return time.Time{}
	}
	return time.Unix(0, last)
}

// TrimAt is the event time behind which [Profile.Trim] leaves nothing of purchases and sums, only what is usual on the
// card; zero when there are none.
func (c Profile) TrimAt() time.Time {
	last := max(c.purchased(), c.Minute.until(quick), c.Hour.until(slow))
	if last == 0 {
		return time.Time{}
	}
	return time.Unix(0, last)
}

// purchased is the event time up to which purchases are compared with others one by one.
func (c Profile) purchased() int64 {
	var last int64
	for i := range c.Recent {
		last = max(last, c.Recent[i].At+int64(Window))
	}
	return last
}

// Trim forgets what no payment at or after the watermark is compared with. Where nothing is to be forgotten, nothing is
// copied.
func (c Profile) Trim(watermark time.Time) Profile {
	w := nanos(watermark)
	c.Recent = c.Recent.only(func(p *Purchase) bool { return p.At+int64(Window) >= w })
	c.Minute = c.Minute.trim(w, quick)
	c.Hour = c.Hour.trim(w, slow)
	return c
}
