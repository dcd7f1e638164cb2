package main

// perService draws one line per service.
func perService(expr string) query { return query{expr, "{{service}}"} }

// relayRate and storeRate are rates of their counters.
func relayRate(metric string) query {
	return perService(rate("service", "feira_relay_"+metric, chosen))
}

func storeRate(metric string) query {
	return perService(rate("service", "feira_store_"+metric, chosen))
}

var relay = dashboard{
	uid: "feira-relay", title: "Feira: stores and relays",
	about:     "From the append of an event to Kafka: the event stores and their group commit, the outbox, the relays.",
	variables: []variable{serviceChoice},
	rows: []row{
		{"Now", []panel{
			figure("Stopped", count, "Relays that need a person.", query{"sum(max by (service) (feira_relay_stopped{" + chosen + "}))", "stopped"}).upTo(1),
			figure("Without a leader", count, "Services whose events nobody publishes.", query{"count(sum by (service) (feira_relay_leader{" + chosen + "}) == 0) or vector(0)", "without"}).upTo(1),
			figure("Oldest unpublished", seconds, "Of all services.", query{"max(feira_relay_oldest_unpublished_seconds{" + chosen + "})", "age"}).upTo(60),
			figure("Unpublished", count, "Events in all stores.", query{"sum(max by (service) (feira_relay_outbox_events{" + chosen + "}))", "events"}),
			figure("Appended", perSecond, "Events per second.", query{total(appended, chosen), "appended"}),
			figure("Published", perSecond, "Events per second.", query{total("feira_relay_published_events_total", chosen), "published"}),
		}},
		{"Event stores", []panel{
			lines("Appended", perSecond, "Events that were committed; private ones too.", storeRate("appended_events_total")),
			lines("Duration of a flush, half", seconds, "Of the group commit, commit included.", perService(quantile("0.5", "service, ", "feira_store_flush_duration_seconds", chosen))),
			lines("Duration of a flush, 99 %", seconds, "Of the group commit, commit included.", perService(quantile("0.99", "service, ", "feira_store_flush_duration_seconds", chosen))),
			lines("Requests per flush", count, "On average: it grows with the load.", perService(mean("service", "feira_store_append_batch_size", chosen))),
			lines("Waiting for a flush", count, "Appends; if it stays high the database is the limit.", perService("sum by (service) (feira_store_append_queue_length{"+chosen+"})")),
			lines("Conflicts", perSecond, "Appends refused because the stream was at another version; they are decided again.", storeRate("append_conflicts_total")),
			lines("Side lane", perSecond, "Appends that waited apart for a row that somebody else held.", storeRate("append_side_lane_total")),
			lines("Flushes tried again", perSecond, "After a lost connection, a timeout, a server that restarts.", storeRate("append_retries_total")),
			lines("Unknown outcomes", perSecond, "Appends that were sent again to learn what had become of them; and transactions with rows of a service that were tried again.",
				query{rate("service", "feira_store_append_unknown_total", chosen), "{{service}}"},
				query{rate("service", "feira_store_transaction_retries_total", chosen), "{{service}} transactions"}),
		}},
		{"Relays", []panel{
			lines("Oldest unpublished", seconds, "Age of the oldest event that Kafka does not have yet.", perService("max by (service) (feira_relay_oldest_unpublished_seconds{"+chosen+"})")).upTo(60),
			lines("Unpublished", count, "Events in the outbox.", perService("max by (service) (feira_relay_outbox_events{"+chosen+"})")),
			lines("Published", perSecond, "Acknowledged by Kafka.", relayRate("published_events_total")),
			lines("Events per round", count, "Published at once, on average.", perService(mean("service", "feira_relay_batch_events", chosen))),
			lines("Rounds", perSecond, "Reads of the store.", relayRate("rounds_total")),
			lines("Ticks", perSecond, "Written to idle partitions, to move watermarks.", relayRate("ticks_total")),
			lines("Batches that failed", perSecond, "Could not be published whole; they are sent again.", relayRate("produce_errors_total")),
			lines("Leaders", count, "Processes that publish the store: one, or none while the lead changes.", perService("sum by (service) (feira_relay_leader{"+chosen+"})")),
		}},
	},
}
