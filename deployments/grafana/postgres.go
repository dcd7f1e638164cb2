package main

// Each process of a service shows the same figures of its database, so the largest is taken.
func databaseMost(metric string) query {
	return perService("max by (service) (feira_postgres_" + metric + "{" + chosen + "})")
}

func databaseRate(metric string) string {
	return "max by (service) (rate(feira_postgres_" + metric + "{" + chosen + "}[$__rate_interval]))"
}

// perTable is a figure of the largest tables.
func perTable(metric string) query {
	return query{"topk(15, max by (service, table) (feira_postgres_" + metric + "{" + chosen + "}))", "{{service}} {{table}}"}
}

var postgres = dashboard{
	uid: "feira-postgres", title: "Feira: Postgres",
	about:     "Each service's database as the server sees it, and the service's connections to it.",
	variables: []variable{serviceChoice},
	rows: []row{
		{"Now", []panel{
			figure("Not answering", count, "Databases that gave no figures within a second.", query{"count(max by (service) (feira_postgres_up{" + chosen + "}) == 0) or vector(0)", "down"}).upTo(1),
			figure("Size", bytesUnit, "Of all databases.", query{"sum(max by (service) (feira_postgres_size_bytes{" + chosen + "}))", "size"}),
			figure("Commits", perSecond, "Of all databases.", query{"sum(" + databaseRate("commits_total") + ")", "commits"}),
			figure("Found in memory", share, "Of the blocks that were asked for.", query{"sum(" + databaseRate("blocks_hit_total") + ") / (sum(" + databaseRate("blocks_hit_total") + ") + sum(" + databaseRate("blocks_read_total") + "))", "hit"}),
			figure("Oldest transaction", seconds, "Until it ends nothing that was deleted since can be cleaned up.", query{"max(feira_postgres_oldest_transaction_seconds{" + chosen + "})", "age"}).upTo(300),
			figure("Write-ahead log", bytesRate, "Of the whole server.", query{"max(rate(feira_postgres_wal_bytes_total{" + chosen + "}[$__rate_interval]))", "WAL"}),
		}},
		{"Databases", []panel{
			lines("Commits", perSecond, "Fewer than events: one transaction carries many.", perService(databaseRate("commits_total"))),
			lines("Rollbacks", perSecond, "Conflicts, refused commits, lost connections.", perService(databaseRate("rollbacks_total"))),
			lines("Found in memory", share, "Of the blocks that were asked for. When it falls the server needs more memory.", perService(databaseRate("blocks_hit_total")+" / ("+databaseRate("blocks_hit_total")+" + "+databaseRate("blocks_read_total")+")")),
			lines("Size", bytesUnit, "On disk.", databaseMost("size_bytes")),
			lines("Rows", count, "Of the 15 largest tables, as the server estimates them.", perTable("live_rows")),
			lines("Dead rows", count, "Gone and not vacuumed yet, of the 15 tables with most.", perTable("dead_rows")),
			lines("Oldest transaction", seconds, "That the service's login may see.", databaseMost("oldest_transaction_seconds")).upTo(300),
			lines("Write-ahead log", bytesRate, "Of the whole server.", query{"max(rate(feira_postgres_wal_bytes_total{" + chosen + "}[$__rate_interval]))", "WAL"}),
			lines("Deadlocks", perSecond, "That the server ended; should be none.", perService(databaseRate("deadlocks_total"))),
			lines("Temporary files", bytesRate, "Written because memory did not suffice.", perService(databaseRate("temporary_bytes_total"))),
			lines("Sessions", count, "Of all clients of a database.", databaseMost("connections")),
			lines("Clock skew", seconds, "By how much a process's clock and the server's differ.", perService("max by (service) (abs(feira_postgres_clock_skew_seconds{"+chosen+"}))")).upTo(2),
		}},
		{"Connections of each service", []panel{
			lines("In use", share, "Of those that a process may open.", query{"max by (service) (feira_pgxpool_acquired_conns{" + chosen + "} / feira_pgxpool_max_conns{" + chosen + "})", "{{service}}"}).upTo(1),
			lines("Callers that wait", count, "On average, because no connection was free.", perService("sum by (service) (rate(feira_pgxpool_empty_acquire_wait_time_ns{"+chosen+"}[$__rate_interval])) / 1e9")).upTo(1),
			lines("Time to get one", seconds, "On average.", perService("sum by (service) (rate(feira_pgxpool_acquire_duration_ns{"+chosen+"}[$__rate_interval])) / 1e9 / sum by (service) (rate(feira_pgxpool_acquire_count{"+chosen+"}[$__rate_interval]))")),
			lines("Opened", perSecond, "New connections: many, where the server or the network breaks them off.", perService(rate("service", "feira_pgxpool_new_conns_count", chosen))),
			lines("Given up", perSecond, "Callers that left before they got a connection.", perService(rate("service", "feira_pgxpool_canceled_acquire_count", chosen))),
		}},
	},
}
