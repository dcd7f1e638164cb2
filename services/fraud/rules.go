package fraud

import (
	"fmt"
	"time"

	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/money"
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

// rule says of a purchase, in words, why it is suspicious; "" when it is not.
type rule struct {
	name   string
	effect func(*Thresholds) Effect
	fires  func(*Thresholds, *measures) (why string)
}

// rules in the order in which verdicts name them.
var rules = [...]rule{
	{RuleDuplicate, func(*Thresholds) Effect { return Effect{Weight: 100, Hard: true} }, duplicate},
	{RuleVelocityMinute, func(t *Thresholds) Effect { return t.Minute.Effect }, velocityMinute},
	{RuleVelocityHour, func(t *Thresholds) Effect { return t.Hour.Effect }, velocityHour},
	{RuleUnusualAmount, func(t *Thresholds) Effect { return t.Unusual.Effect }, unusualAmount},
	{RuleNewCard, func(t *Thresholds) Effect { return t.New.Effect }, newCard},
	{RuleModel, func(t *Thresholds) Effect { return t.Model.Effect }, objection},
}

// duplicate: a purchase less than [Window] from one with an earlier offset, before or after it in event time, repeats
// it. It is no threshold: that a double click is paid once is what the shop promises.
func duplicate(_ *Thresholds, m *measures) string {
	if !m.repeats {
		return ""
	}
	apart := time.Duration(m.purchase.At - m.first.At).Abs()
	return fmt.Sprintf("%s from another purchase of %s on the same card", apart.Round(time.Millisecond), m.purchase.money())
}

func velocityMinute(t *Thresholds, m *measures) string {
	return tooFast(&t.Minute, m.minute, m.purchase.Currency, "a minute")
}

func velocityHour(t *Thresholds, m *measures) string {
	return tooFast(&t.Hour, m.hour, m.purchase.Currency, "an hour")
}

func tooFast(l *VelocityLimits, v speed, currency, within string) string {
	if v.payments > l.Payments {
		return fmt.Sprintf("%d payments on the card within %s, more than %d", v.payments, within, l.Payments)
	}
	if most, limited := l.Sums[currency]; limited && v.sum > most {
		return fmt.Sprintf("%s on the card within %s, more than %s", money.New(v.sum, currency), within, money.New(most, currency))
	}
	return ""
}

func unusualAmount(t *Thresholds, m *measures) string {
	if m.known < t.Unusual.Known || max(m.deviations, -m.deviations) <= t.Unusual.Deviations {
		return ""
	}
	return fmt.Sprintf("%s is %.1f deviations from the mean of %s over %d purchases, more than %g",
		m.purchase.money(), m.deviations, money.New(int64(m.mean), m.purchase.Currency), m.known, t.Unusual.Deviations)
}

func newCard(t *Thresholds, m *measures) string {
	most, limited := t.New.Amounts[m.purchase.Currency]
	if !limited || m.purchase.Amount <= most || m.age > 0 && m.age.Hours() >= t.New.Hours {
		return ""
	}
	since := "that was never seen before"
	if m.age > 0 {
		since = fmt.Sprintf("first seen %s before", m.age.Round(time.Second))
	}
	return fmt.Sprintf("%s on a card %s, more than %s", m.purchase.money(), since, money.New(most, m.purchase.Currency))
}

func objection(t *Thresholds, m *measures) string {
	if m.score < t.Model.Probability { // -1: there is no model
		return ""
	}
	return fmt.Sprintf("the model gives %.1f %% for fraud, %.1f %% or more", float64(m.score)/10, float64(t.Model.Probability)/10)
}

// weigh is the verdict on a purchase: every rule that fired, with what it adds to the score.
//
// Who may release what is held depends on the reason: the customer, when it looks like a double click and like nothing
// else; otherwise a person of the shop, so that a thief cannot.
func weigh(t *Thresholds, m *measures, v events.Verdict) events.Event {
	score, repeated, hard := 0, false, false
	for i := range rules {
		why := rules[i].fires(t, m)
		if why == "" {
			continue
		}
		e := rules[i].effect(t)
		v.Rules = append(v.Rules, rules[i].name)
		v.Reasons = append(v.Reasons, events.Fired{Rule: rules[i].name, Weight: e.Weight, Why: why})
		v.Score += e.Weight
		if rules[i].name == RuleDuplicate {
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
		held.DuplicateOfPayment, held.DuplicateOfOrder = m.first.Payment, m.first.Order
	}
	if !suspicious {
		held.Reason = events.ReasonDuplicatePurchase
	}
	return held
}
