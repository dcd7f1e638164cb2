package main

// streamOperators are those that keep state by event time.
var streamOperators = variable{name: "operator", label: "Operator", query: "label_values(feira_stream_state_keys, operator)", listed: true}

const chosenStream = `operator=~"$operator"`

var streams = dashboard{
	uid: "feira-streams", title: "Feira: streams",
	about:     "Operators that compute by the time of events: state in memory, watermarks, late events.",
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
			lines("Keys with state", count, "In memory of all processes. It grows with the load, not with time.", perOperator("sum by (service, operator) (feira_stream_state_keys{"+chosenStream+"})")),
			lines("State saved", bytesRate, "Written with the checkpoints.", perOperator(rate("service, operator", "feira_operator_checkpoint_bytes_sum", chosenStream))),
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
