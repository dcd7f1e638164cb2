package main

const (
	appended    = "feira_store_appended_events_total"
	placed      = `type="shop.feira.order.placed.v1"`
	confirmed   = `type="shop.feira.order.confirmed.v1"`
	cancelled   = `type="shop.feira.order.cancelled.v1"`
	endings     = "feira_store_ending_seconds"
	answers     = "feira_gateway_answers_total"
	answerTimes = "feira_http_request_duration_seconds"
	checkouts   = `service="orders",route="/v1/orders",method="POST"`
)

// events gives the rate of one type of events.
func events(typ, legend string) query {
	return query{total(appended, `type="shop.feira.`+typ+`.v1"`), legend}
}

var shop = dashboard{
	uid: "feira-shop", title: "Feira: shop",
	about: "What customers get: orders and how they end, the promises of the checkout, money, stock and jobs.",
	rows: []row{
		{"Now", []panel{
			figure("Orders placed", perSecond, "Per second, in the last minutes.", query{total(appended, placed), "placed"}),
			figure("Orders confirmed", perSecond, "Per second.", query{total(appended, confirmed), "confirmed"}),
			figure("Cancelled by deadline", share, "Of the orders of the last 10 minutes: those for which stock, payment or verdict did not come in time.", query{"shop:orders_missed_deadline:ratio_rate10m", "by deadline"}).upTo(0.02),
			figure("Confirmed within", seconds, "19 of 20 orders, from placed to confirmed.", query{quantile("0.95", "", endings, confirmed), "95 %"}).upTo(30),
			figure("Checkouts that fail", share, "Of the last 5 minutes. 0.1 % are allowed in a month.", query{"checkout:errors:ratio_rate5m", "errors"}).upTo(0.001),
			figure("Checkouts over 250 ms", share, "Of the last 5 minutes. 1 % are allowed in a month.", query{"checkout:slow:ratio_rate5m", "slow"}).upTo(0.01),
		}},
		{"Orders", []panel{
			lines("Orders", perSecond, "Placed, and how they ended. Confirmed and cancelled together follow placed.",
				query{total(appended, placed), "placed"}, query{total(appended, confirmed), "confirmed"}, query{total(appended, cancelled), "cancelled"}),
			lines("Cancellations", perSecond, "By reason. Deadline means that something did not work.", query{rate("outcome", appended, cancelled), "{{outcome}}"}),
			lines("From placed to confirmed", seconds, "How long orders take: half, 95 and 99 of a hundred.", quantiles(endings, confirmed)...),
		}},
		{"Checkout", []panel{
			lines("Checkouts that fail", share, "The promise is 0.1 % in 30 days.", query{"checkout:errors:ratio_rate5m", "5 minutes"}, query{"checkout:errors:ratio_rate1h", "1 hour"}, query{"checkout:errors:ratio_rate6h", "6 hours"}).upTo(0.001),
			lines("Checkouts over 250 ms", share, "The promise is 1 % in 30 days.", query{"checkout:slow:ratio_rate5m", "5 minutes"}, query{"checkout:slow:ratio_rate1h", "1 hour"}, query{"checkout:slow:ratio_rate6h", "6 hours"}).upTo(0.01),
			lines("Time to answer a checkout", seconds, "Without what the client asked it to wait.", quantiles(answerTimes, checkouts+`,code=~"2.."`)...).upTo(0.25),
		}},
		{"Answers", []panel{
			lines("Answers by code", requests, "Of the gateway, to all clients. 499: the client left before, 502: the answer broke off.", query{rate("code", answers, ""), "{{code}}"}),
			lines("Answers by route", requests, "Of the gateway.", query{rate("method, route", answers, ""), "{{method}} {{route}}"}),
			lines("Time to answer", seconds, "Of 95 in a hundred requests, by route.", query{quantile("0.95", "method, route, ", answerTimes, ""), "{{method}} {{route}}"}),
		}},
		{"Money and stock", []panel{
			lines("Payments", perSecond, "What became of the money.", events("payment.authorized", "authorised"), events("payment.captured", "captured"),
				events("payment.declined", "declined"), events("payment.voided", "voided"), events("payment.refunded", "refunded"),
				events("payment.capture_failed", "capture failed"), events("payment.refund_failed", "refund failed")),
			lines("Stock", perSecond, "What inventory answered to orders.", events("stock.reserved", "reserved"), events("stock.refused", "refused"),
				events("stock.released", "released"), events("stock.received", "received")),
			lines("Verdicts and points", perSecond, "Of fraud and loyalty.", events("purchase.cleared", "cleared"), events("purchase.held", "held"),
				events("points.earned", "points earned"), events("points.reversed", "points reversed")),
			lines("Clicks", perSecond, "That analytics counted, of all programs that write to eventos-usuario.",
				query{total("feira_operator_events_processed_total", `operator="analytics.clicks"`), "clicks"}),
			lines("Accounts' windows", perSecond, "What analytics said of the accounts as windows closed, every five minutes.", events("account_spend.closed", "closed")),
		}},
		{"Jobs", []panel{
			lines("Attempts", perSecond, "By how they ended. Refused or panicked is an error in the program.", query{rate("outcome", "feira_job_attempts_total", ""), "{{outcome}}"}),
			lines("Side effect of an attempt", seconds, "95 of a hundred, by kind.", query{quantile("0.95", "kind, ", "feira_job_duration_seconds", ""), "{{kind}}"}),
			lines("Waiting", count, "Jobs to do, of all services.", query{"sum by (state) (max by (service, state) (feira_jobs))", "{{state}}"}),
			lines("Oldest job", seconds, "Age of the oldest job that is not done.", query{"max by (service) (feira_jobs_oldest_seconds)", "{{service}}"}).upTo(120),
			lines("Breakers", count, "0 closed, 1 half open, 2 open: the provider does not answer.", query{"max by (service, breaker) (feira_job_breaker_state)", "{{service}} {{breaker}}"}).upTo(2),
			lines("Attempts needed", count, "On average, of jobs that were completed.", query{mean("kind", "feira_job_attempts_needed", ""), "{{kind}}"}),
		}},
		{"Processes", []panel{
			figure("Processes", count, "That answer Prometheus.", query{`sum(up{job="feira"})`, "up"}),
			figure("Not answering", count, "Processes that Prometheus knows and cannot reach.", query{`count(up{job="feira"} == 0) or vector(0)`, "down"}).upTo(1),
			figure("Builds", count, "Different programs that run; more than one while a release is rolled out.", query{"count(count by (version, revision) (feira_build_info))", "builds"}).upTo(2),
			lines("Processors", processors, "Used by each process.", query{`sum by (process, instance) (rate(process_cpu_seconds_total{job="feira"}[$__rate_interval]))`, "{{process}} {{instance}}"}).wide(6),
			lines("Memory", bytesUnit, "Resident, of each process.", query{`sum by (process, instance) (process_resident_memory_bytes{job="feira"})`, "{{process}} {{instance}}"}).wide(6),
		}},
	},
}
