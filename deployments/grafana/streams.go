package main

// streamOperators are those that compute by event time.
var streamOperators = variable{name: "operator", label: "Operator", query: "label_values(feira_stream_watermark_delay_seconds, operator)", listed: true}

const chosenStream = `operator=~"$operator"`

// openWindows are those that the process knows of that closes them: others may think of too many, or have no partition.
func openWindows(selector string) string {
	metric := "min by (service, operator) (feira_stream_open_windows{" + selector + "}"
	return metric + " > 0) or " + metric + ")"
}

var streams = dashboard{
	uid: "feira-streams", title: "Feira: streams",
	about:     "Operators that compute by the time of events: watermarks, windows, states, late events.",
	variables: []variable{streamOperators},
	rows: []row{
		{"Now", []panel{
			figure("Keys", count, "With state in memory.", query{"sum(feira_stream_state_keys{" + chosenStream + "})", "keys"}),
			figure("Behind the clock", seconds, "The lowest watermark: the allowed disorder, and what is not read yet.", query{"max(feira_stream_watermark_delay_seconds{" + chosenStream + "})", "delay"}).upTo(1800),
			figure("Late", count, "Events of the last hour behind the watermark of their partition.", query{"sum(increase(feira_stream_late_events_total{" + chosenStream + "}[1h]))", "late"}).upTo(1),
			figure("Quarantined", count, "Events of the last hour from the future.", query{"sum(increase(feira_stream_quarantined_events_total{" + chosenStream + "}[1h]))", "quarantined"}).upTo(1),
			figure("Applied", perSecond, "Events per second.", query{total("feira_operator_events_processed_total", chosenStream), "applied"}),
			figure("Saved", bytesRate, "State, per second.", query{total("feira_operator_checkpoint_bytes_sum", chosenStream), "saved"}),
		}},
		{"Time and state", []panel{
			lines("Watermark behind the clock", seconds, "Of the partition that is furthest behind. It stands still when neither events nor ticks come.", perOperator("max by (service, operator) (feira_stream_watermark_delay_seconds{"+chosenStream+"})")),
			lines("Keys with state", count, "In memory of all processes: what rules still need, such as the cards of the last 90 days.", perOperator("sum by (service, operator) (feira_stream_state_keys{"+chosenStream+"})")),
			lines("Size of the states", bytesUnit, "As they are saved.", perOperator("sum by (service, operator) (feira_stream_state_bytes{"+chosenStream+"})")),
			lines("State saved", bytesRate, "Written with the checkpoints: states that changed, partial sums of windows.", perOperator(rate("service, operator", "feira_operator_checkpoint_bytes_sum", chosenStream))),
			lines("Rows in the logs of changes", count, "That a restart would read. It follows the size of the states.", perOperator("sum by (service, operator) (feira_stream_delta_rows{"+chosenStream+"})")),
			lines("States carried forward", perSecond, "Saved again without a change, so that old rows can go.", perOperator(rate("service, operator", "feira_stream_carried_keys_total", chosenStream))),
		}},
		{"Windows", []panel{
			lines("Open", count, "Begun and not closed. When it grows, the time of some partition stands still, or a closing fails.", perOperator(openWindows(chosenStream))).upTo(12),
			lines("Results", perSecond, "Said as windows closed, one per window and key.", perOperator(rate("service, operator", "feira_stream_window_results_total", chosenStream))),
			lines("Time spent closing", share, "Of each second, in transactions that close windows; batches wait meanwhile.", perOperator(rate("service, operator", "feira_operator_closing_seconds_sum", chosenStream))),
		}},
		{"Events", []panel{
			lines("Late", perSecond, "Behind the watermark of their partition: counted and kept.", perOperator(rate("service, operator", "feira_stream_late_events_total", chosenStream))),
			lines("Quarantined", perSecond, "Whose time is too far after that of their recording: a clock is wrong.", perOperator(rate("service, operator", "feira_stream_quarantined_events_total", chosenStream))),
			lines("Ticks", perSecond, "What relays write to idle partitions, so that time goes on.", perService(rate("service", "feira_relay_ticks_total", ""))),
			lines("Applied", perSecond, "Events whose effects were committed.", perOperator(rate("service, operator", "feira_operator_events_processed_total", chosenStream))),
			lines("Duration of a transaction", seconds, "From begin to commit.", quantiles("feira_operator_checkpoint_seconds", chosenStream)...),
			lines("Reaction", seconds, "From the writing of an event to the commit of its effects.", quantiles("feira_operator_reaction_seconds", chosenStream)...),
		}},
	},
}
