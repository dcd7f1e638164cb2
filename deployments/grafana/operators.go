package main

// chosen limits queries to what is chosen at the top of the page.
const (
	chosen         = `service=~"$service"`
	chosenOperator = `service=~"$service",operator=~"$operator"`
)

// perOperator draws one line per operator.
func perOperator(expr string) query { return query{expr, "{{operator}}"} }

// operatorRate is the rate of one of the operators' counters.
func operatorRate(metric string) query {
	return perOperator(rate("service, operator", "feira_operator_"+metric, chosenOperator))
}

// operatorMost is the largest value of a gauge among the processes.
func operatorMost(metric string) query {
	return perOperator("max by (service, operator) (feira_operator_" + metric + "{" + chosenOperator + "})")
}

var operators = dashboard{
	uid: "feira-operators", title: "Feira: operators",
	about:     "What turns events into effects: how far behind each operator is, how long events take, what it could not apply.",
	variables: []variable{serviceChoice, operatorChoice},
	rows: []row{
		{"Now", []panel{
			figure("Stopped", count, "Operators that need a person.", query{"sum(max by (service, operator) (feira_operator_stopped{" + chosenOperator + "}))", "stopped"}).upTo(1),
			figure("Paused", count, "By a person.", query{"sum(max by (service, operator) (feira_operator_paused{" + chosenOperator + "}))", "paused"}).upTo(1),
			figure("Parked", count, "Records that wait for a person, with later ones of their keys.", query{"sum(feira_operator_parked{" + chosenOperator + "})", "parked"}).upTo(1),
			figure("Behind", seconds, "The oldest record that is not applied.", query{"max(feira_operator_lag_seconds{" + chosenOperator + "})", "lag"}).upTo(30),
			figure("Behind", count, "Records that are not applied.", query{"sum(feira_operator_lag_events{" + chosenOperator + "})", "lag"}),
			figure("Applied", perSecond, "Events per second.", query{total("feira_operator_events_processed_total", chosenOperator), "applied"}),
		}},
		{"Lag", []panel{
			lines("Behind", seconds, "Age of the oldest record that is read and not committed.", operatorMost("lag_seconds")).upTo(30),
			lines("Behind", count, "Records that are not committed.", perOperator("sum by (service, operator) (feira_operator_lag_events{"+chosenOperator+"})")),
			lines("Applied", perSecond, "Events whose effects were committed.", operatorRate("events_processed_total")),
		}},
		{"Reaction: from the writing of an event to the commit of its effects", []panel{
			lines("Half", seconds, "The time that half of the events take at most.", perOperator(quantile("0.5", "service, operator, ", "feira_operator_reaction_seconds", chosenOperator))),
			lines("95 %", seconds, "The time that 95 of a hundred events take at most.", perOperator(quantile("0.95", "service, operator, ", "feira_operator_reaction_seconds", chosenOperator))),
			lines("99 %", seconds, "The time that 99 of a hundred events take at most.", perOperator(quantile("0.99", "service, operator, ", "feira_operator_reaction_seconds", chosenOperator))),
		}},
		{"Transactions", []panel{
			lines("Transactions", perSecond, "Committed. With batches of many events there are fewer of them.", perOperator(rate("service, operator", "feira_operator_checkpoint_seconds_count", chosenOperator))),
			lines("Events per transaction", count, "On average: it grows with the load.", perOperator(mean("service, operator", "feira_operator_batch_events", chosenOperator))),
			lines("Bytes per transaction", bytesUnit, "On average: of the saved state, or else of the events.", perOperator(mean("service, operator", "feira_operator_checkpoint_bytes", chosenOperator))),
			lines("Duration, half", seconds, "From begin to commit.", perOperator(quantile("0.5", "service, operator, ", "feira_operator_checkpoint_seconds", chosenOperator))).wide(12),
			lines("Duration, 99 %", seconds, "From begin to commit.", perOperator(quantile("0.99", "service, operator, ", "feira_operator_checkpoint_seconds", chosenOperator))).upTo(1).wide(12),
		}},
		{"What did not go the straight way", []panel{
			lines("Parked", count, "Records that could not be applied, and those that wait behind them.", perOperator("sum by (service, operator) (feira_operator_parked{"+chosenOperator+"})")).upTo(1),
			lines("Duplicates dropped", perSecond, "Records whose event was applied before: after a crash of the relay that wrote them.", operatorRate("duplicates_dropped_total")),
			lines("Unknown types skipped", perSecond, "Records of types that this program does not know: written by a newer release.", operatorRate("unknown_types_skipped_total")),
			lines("Commits refused", perSecond, "Because the partition had another owner: some at each rebalance.", operatorRate("commits_fenced_total")),
			lines("Batches tried again", perSecond, "After a transient error: a conflict, a lost connection.", operatorRate("retries_total")),
			lines("Reconnections", perSecond, "To consumer groups, and resumptions after a stop.", operatorRate("restarts_total")),
		}},
	},
}
