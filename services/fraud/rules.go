package fraud

import (
	"strconv"
	"time"

	"github.com/bojanz/currency"

	"github.com/feira-shop/feira/shared/events"
)

// Names of the rules, as verdicts carry them.
const (
	RuleDuplicate      = "duplicate_purchase"
	RuleVelocityMinute = "velocity_minute"
	RuleVelocityHour   = "velocity_hour"
	RuleUnusualAmount  = "unusual_amount"
	RuleNewCard        = "new_card_high_amount"
	RuleModel          = "model"
	// RuleTooLate is no rule of state and event: the payment came later than purchases are kept.
	RuleTooLate = "too_late_to_judge"
)

// Rules are all rules, in the order in which verdicts name them.
var Rules = [...]string{RuleDuplicate, RuleVelocityMinute, RuleVelocityHour, RuleUnusualAmount, RuleNewCard, RuleModel}

// ask puts a purchase to the i-th of the [Rules], and has it say on why, in words, what is suspicious; it says nothing
// when nothing is. Called by their names, the rules keep measures and words off the heap: a decision has two
// microseconds, its explanation included.
func ask(i int, t *Thresholds, m *measures, why []byte) ([]byte, Effect) {
	switch Rules[i] {
	case RuleDuplicate:
		return duplicate(m, why), Effect{Weight: 100, Hard: true}
	case RuleVelocityMinute:
		return tooFast(&t.Minute, m.minute, m.currency, "a minute", why), t.Minute.Effect
	case RuleVelocityHour:
		return tooFast(&t.Hour, m.hour, m.currency, "an hour", why), t.Hour.Effect
	case RuleUnusualAmount:
		return unusualAmount(&t.Unusual, m, why), t.Unusual.Effect
	case RuleNewCard:
		return newCard(&t.New, m, why), t.New.Effect
	default:
		return objection(&t.Model, m, why), t.Model.Effect
	}
}

// duplicate: a purchase less than [Window] from one with an earlier offset, before or after it in event time, repeats
// it. It is no threshold: that a double click is paid once is what the shop promises.
func duplicate(m *measures, why []byte) []byte {
	if !m.repeats {
		return why
	}
	apart := time.Duration(m.purchase.At - m.first.At).Abs()
	why = strconv.AppendFloat(why, apart.Seconds(), 'f', 3, 64)
	why = append(why, " s from another purchase of "...)
	return append(price(why, m.purchase.Amount, m.currency), " on the same card"...)
}

func tooFast(l *VelocityLimits, v speed, currency, within string, why []byte) []byte {
	if v.payments > l.Payments {
		why = append(strconv.AppendInt(why, v.payments, 10), " payments on the card within "...)
		return strconv.AppendInt(append(append(why, within...), ", more than "...), l.Payments, 10)
	}
	if most, limited := l.Sums[currency]; limited && v.sum > most {
		why = append(price(why, v.sum, currency), " on the card within "...)
		return price(append(append(why, within...), ", more than "...), most, currency)
	}
	return why
}

func unusualAmount(l *UnusualLimits, m *measures, why []byte) []byte {
	if m.known < l.Known || max(m.deviations, -m.deviations) <= l.Deviations {
		return why
	}
	why = append(price(why, m.purchase.Amount, m.currency), " is "...)
	why = append(strconv.AppendFloat(why, m.deviations, 'f', 1, 64), " deviations from the mean of "...)
	why = append(price(why, int64(m.mean), m.currency), " over "...)
	why = append(strconv.AppendInt(why, m.known, 10), " purchases, more than "...)
	return strconv.AppendFloat(why, l.Deviations, 'g', -1, 64)
}

func newCard(l *NewLimits, m *measures, why []byte) []byte {
	most, limited := l.Amounts[m.currency]
	if !limited || m.purchase.Amount <= most || m.age > 0 && m.age.Hours() >= l.Hours {
		return why
	}
	why = append(price(why, m.purchase.Amount, m.currency), " on a card that was "...)
	if m.age == 0 {
		why = append(why, "never seen before"...)
	} else {
		why = append(strconv.AppendInt(append(why, "first seen "...), int64(m.age.Seconds()), 10), " s before"...)
	}
	return price(append(why, ", more than "...), most, m.currency)
}

func objection(l *ModelLimits, m *measures, why []byte) []byte {
	if m.score < l.Probability { // -1: there is no model
		return why
	}
	why = strconv.AppendFloat(append(why, "the model gives "...), float64(m.score)/10, 'f', 1, 64)
	why = strconv.AppendFloat(append(why, " % for fraud, "...), float64(l.Probability)/10, 'f', 1, 64)
	return append(why, " % or more"...)
}

// price is an amount for people, as money.Money has it, without the cost of its decimals.
func price(why []byte, amount int64, code string) []byte {
	digits, known := currency.GetDigits(code)
	if known && digits > 0 && amount >= 0 {
		unit := int64(1)
		for range digits {
			unit *= 10
		}
		why = append(strconv.AppendInt(why, amount/unit, 10), '.')
		for rest := amount % unit * 10; digits > 0; digits, rest = digits-1, rest%unit*10 {
			why = append(why, byte('0'+rest/unit))
		}
	} else {
		why = strconv.AppendInt(why, amount, 10)
	}
	return append(append(why, ' '), code...)
}

// weigh is the verdict on a purchase: every rule that fired, with what it adds to the score.
//
// Who may release what is held depends on the reason: the customer, when it looks like a double click and like nothing
// else; otherwise a person of the shop, so that a thief cannot.
func weigh(t *Thresholds, m *measures, v events.Verdict) events.Event {
	score, repeated, hard := 0, false, false
	var room [160]byte
	for i, name := range Rules {
		why, e := ask(i, t, m, room[:0])
		if len(why) == 0 {
			continue
		}
		v.Rules = append(v.Rules, name)
		v.Reasons = append(v.Reasons, events.Fired{Rule: name, Weight: e.Weight, Why: string(why)})
		v.Score += e.Weight
		if name == RuleDuplicate {
			repeated = true
			continue
		}
		score += e.Weight
		hard = hard || e.Hard
	}
	v.Score = min(v.Score, 100)
	suspicious := hard || score >= t.HoldAt
	if !suspicious && !repeated {
		return events.PurchaseCleared{Verdict: v}
	}
	held := events.PurchaseHeld{Verdict: v, Reason: events.ReasonFraud}
	if repeated {
		held.DuplicateOfPayment, held.DuplicateOfOrder = m.first.Payment.String(), m.first.Order.String()
	}
	if !suspicious {
		held.Reason = events.ReasonDuplicatePurchase
	}
	return held
}
