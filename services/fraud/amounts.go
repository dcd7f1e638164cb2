package fraud

import "math"

// Amounts are the running mean and variance of what a card pays in one currency, by Welford's method: numerically
// stable, in constant space.
type Amounts struct {
	Currency Currency `json:"c"`
	Count    int64    `json:"n"`
	Mean     float64  `json:"m"` // minor units
	Squares  float64  `json:"s"` // sum of squared distances from the mean
}

const (
	// usualAfter is after how many amounts one is known to be unusual enough to be learned in part only.
	usualAfter = 5
	// learnedAbove is how many deviations above the mean an amount is learned at most, so that one theft does not make
	// the next one usual; a habit that has really changed is learned within some purchases.
	learnedAbove = 3
	// leastSpread, of the mean, stands in for the deviation of a card that always pays about the same.
	leastSpread = 0.25
)

// spread is the standard deviation of the amounts, at least a quarter of their mean; 0 of none.
func (a *Amounts) spread() float64 {
	deviation := 0.0
	if a.Count > 1 {
		deviation = math.Sqrt(a.Squares / float64(a.Count-1))
	}
	return max(deviation, a.Mean*leastSpread)
}

// deviations are how many deviations an amount is from the mean, below it as a negative number; 0 where nothing is known.
func (a *Amounts) deviations(amount int64) float64 {
	spread := a.spread()
	if spread == 0 {
		return 0
	}
	return (float64(amount) - a.Mean) / spread
}

// add learns an amount. The conversions keep compilers from fusing what follows, which would give other last digits on
// other processors, and so other states.
func (a *Amounts) add(amount int64) {
	x := float64(amount)
	if a.Count >= usualAfter {
		x = min(x, a.Mean+float64(learnedAbove*a.spread()))
	}
	a.Count++
	d := x - a.Mean
	a.Mean += float64(d / float64(a.Count))
	a.Squares += float64(d * (x - a.Mean))
}

// amountsIn finds what is known of a currency; nil: nothing.
func amountsIn(all []Amounts, currency Currency) *Amounts {
	for i := range all {
		if all[i].Currency == currency {
			return &all[i]
		}
	}
	return nil
}

// learn is the amounts with another one.
func learn(all []Amounts, currency Currency, amount int64) []Amounts {
	c := make([]Amounts, len(all), len(all)+1)
	copy(c, all)
	a := amountsIn(c, currency)
	if a == nil {
		c = append(c, Amounts{Currency: currency})
		a = &c[len(c)-1]
	}
	a.add(amount)
	return c
}
