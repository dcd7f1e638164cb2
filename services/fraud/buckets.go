package fraud

import "time"

// scale is how coarse buckets are, and how many of them are one window.
type scale struct {
	width  int64 // nanoseconds
	window int64 // buckets
}

// A minute counts as twelve buckets of five seconds and an hour as sixty of a minute, the purchase's own among them: so
// each is up to one bucket short.
var (
	quick = scale{width: int64(5 * time.Second), window: 12}
	slow  = scale{width: int64(time.Minute), window: 60}
)

func (s scale) index(at int64) int64 { return at / s.width }

// Buckets are numbers and sums of payments, by time and currency, in the order in which they were first met.
type Buckets []Bucket

// Bucket is what a card paid in one currency within one bucket of time.
type Bucket struct {
	Index    int64    `json:"i"` // time since 1970, in buckets
	Payments int64    `json:"n"`
	Sum      int64    `json:"s"`
	Currency Currency `json:"c"`
}

// speed is how many payments there were, and what they came to in one currency.
type speed struct{ payments, sum int64 }

// speed is that of the fuller of the two windows that end and begin with a purchase, with it. Events come out of order,
// so others that happened after it may be known already.
func (bs Buckets) speed(p Purchase, s scale) speed {
	at := s.index(p.At)
	var before, after speed
	for i := range bs {
		b := &bs[i]
		if d := b.Index - at; -s.window < d && d <= 0 {
			before.add(b, p.Currency)
		}
		if d := b.Index - at; 0 <= d && d < s.window {
			after.add(b, p.Currency)
		}
	}
	return speed{payments: 1 + max(before.payments, after.payments), sum: p.Amount + max(before.sum, after.sum)}
}

func (v *speed) add(b *Bucket, currency Currency) {
	v.payments += b.Payments
	if b.Currency == currency {
		v.sum += b.Sum
	}
}

func (bs Buckets) find(p Purchase, s scale) int {
	at := s.index(p.At)
	for i := range bs {
		if bs[i].Index == at && bs[i].Currency == p.Currency {
			return i
		}
	}
	return -1
}

// with counts a purchase, in a copy at the beginning of room, and says what is left of room.
func (bs Buckets) with(p Purchase, s scale, room Buckets) (c, left Buckets) {
	i, n := bs.find(p, s), len(bs)
	copy(room, bs)
	if i < 0 {
		i, n = n, n+1
		room[i] = Bucket{Index: s.index(p.At), Currency: p.Currency}
	}
	room[i].Payments++
	room[i].Sum += p.Amount
	return room[:n:n], room[n:]
}

// without takes a purchase out again, if its bucket is still there.
func (bs Buckets) without(p Purchase, s scale) Buckets {
	i := bs.find(p, s)
	if i < 0 {
		return bs
	}
	c := make(Buckets, len(bs))
	copy(c, bs)
	c[i].Payments--
	c[i].Sum -= p.Amount
	if c[i].Payments > 0 {
		return c
	}
	if c = append(c[:i], c[i+1:]...); len(c) == 0 {
		return nil
	}
	return c
}

// until is the end of the time in which a purchase may have one of the buckets in its window, nanoseconds since 1970.
func (bs Buckets) until(s scale) int64 {
	var last int64
	for i := range bs {
		last = max(last, (bs[i].Index+s.window)*s.width)
	}
	return last
}

// trim drops buckets that are in no window of a purchase at or after the watermark.
func (bs Buckets) trim(watermark int64, s scale) Buckets {
	lowest := s.index(watermark) - s.window + 1
	left := 0
	for i := range bs {
		if bs[i].Index >= lowest {
			left++
		}
	}
	switch left {
	case len(bs):
		return bs
	case 0:
		return nil
	}
	c := make(Buckets, 0, left)
	for i := range bs {
		if bs[i].Index >= lowest {
			c = append(c, bs[i])
		}
	}
	return c
}
