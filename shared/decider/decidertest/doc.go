// Package decidertest states the rules of a decider as sentences, and checks the laws that every decider obeys.
//
//	decidertest.New(rules).
//		Given(events.PointsEarned{Customer: ana, Order: o1, Points: 100, Paid: brl(100)}).
//		When(Reverse{Order: o1, Refunded: brl(40)}).
//		Then(t, events.PointsReversed{Customer: ana, Order: o1, Points: 40})
package decidertest
