package fraud

import (
	"math"
	"time"
)

// measures are what a card's profile and a purchase say together: all that rules and model look at.
type measures struct {
	purchase     Purchase
	currency     string   // of it
	first        Purchase // the earlier one that it may repeat
	repeats      bool
	minute, hour speed         // with this purchase
	known        int64         // amounts that were learned in its currency
	mean         float64       // of them
	deviations   float64       // from the mean
	age          time.Duration // of the card here; 0: it is new
	score        int           // of the model, in thousandths; -1: there is none
}

// measure compares a purchase, in a currency, with the profile as it was before.
func measure(c Profile, p Purchase, currency string) measures {
	m := measures{purchase: p, currency: currency, minute: c.Minute.speed(p, quick), hour: c.Hour.speed(p, slow), score: -1}
	m.first, m.repeats = c.Recent.near(p)
	if a := amountsIn(c.Amounts, p.Currency); a != nil {
		m.known, m.mean, m.deviations = a.Count, a.Mean, a.deviations(p.Amount)
	}
	if c.First != 0 {
		m.age = time.Duration(max(0, p.At-c.First))
	}
	return m
}

// FeatureNames are the numbers that a model looks at, in their order.
var FeatureNames = [...]string{
	"amount", "high_amount", "payments_in_a_minute", "payments_in_an_hour", "sum_in_a_minute", "sum_in_an_hour",
	"known_amounts", "deviations", "hours_known", "high_and_new",
}

// Features are the numbers of one purchase, as [FeatureNames] names them.
type Features [len(FeatureNames)]float64

const (
	mostDeviations = 20       // beyond, it makes no difference how many they are
	habit          = 10       // purchases make a card one that is known well
	high           = 10.30895 // logarithm of 30,000 minor units, above which few purchases are
)

// features are the measures as numbers of a similar size: amounts and numbers by their logarithms, since twice as much is
// as much more, whatever it is twice of.
func (m *measures) features() Features {
	amount := math.Log(1 + max(0, float64(m.purchase.Amount)))
	of := func(sum int64) float64 {
		if sum == m.purchase.Amount {
			return amount
		}
		return math.Log(1 + max(0, float64(sum)))
	}
	deviations := 0.0
	if m.known > 1 {
		deviations = min(mostDeviations, max(-mostDeviations, m.deviations))
	}
	above := max(0, amount-high)
	return Features{
		amount, above, math.Log(float64(m.minute.payments)), math.Log(float64(m.hour.payments)), of(m.minute.sum), of(m.hour.sum),
		math.Log(1 + float64(m.known)), deviations, math.Log(1 + m.age.Hours()),
		float64(above * (1 - float64(min(m.known, habit))/habit)),
	}
}
