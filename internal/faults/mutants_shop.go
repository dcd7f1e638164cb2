package main

var shopMutants = []mutant{
	{
		Protection: "the idempotency key at the provider", File: "services/payments/provider.go",
		Old: `req.Header.Set("Idempotency-Key", key)`, New: `req.Header.Set("Idempotency-Key", fmt.Sprint(key, time.Now().UnixNano()))`,
		test: test{Package: "./services/payments", Test: "TestFaultMoneyRaces"},
	},
	{
		Protection: "the guard of refunds", File: "services/payments/rules.go",
		Old: "\tcase amount.Amount > p.Kept():\n\t\treturn CodeExceedsCaptured\n", New: "",
		test: test{Package: "./services/payments", Test: "TestFaultMoneyRaces"},
	},
	{
		Protection: "the guard against verdicts after the end of an order", File: "services/orders/decide.go",
		Old: "cancelIf(o.Open(), o, events.ReasonPaymentDeclined", New: "cancelIf(true, o, events.ReasonPaymentDeclined",
		test: test{Package: "./internal/shoptest", Test: "TestFaultMoneyAndStock"},
	},
	{
		Protection: "the look at the shelf before a reservation", File: "services/inventory/decide.go",
		Old: "a := shelves[l.SKU].Available(); a < l.Quantity", New: "a := shelves[l.SKU].Available(); a < -1_000_000",
		test: test{Package: "./services/inventory", Test: "TestFaultTenPiecesForTwoHundredOrders"},
	},
	{
		Protection: "the attempt fence of a job's outcome", File: "shared/eventstore/migrations/00001_store.sql",
		Old: "elsif status[q] = 1 and not r.holds then", New: "elsif false then",
		test: test{Package: "./shared/jobs", Test: "TestFaultLateOutcome"},
	},
	{
		Protection: "the idempotency key of a checkout", File: "services/orders/ids.go",
		Old: `[]byte(customer+"\x00"+key)`, New: `[]byte(customer+"\x00"+key+uuid.NewString())`,
		test: test{Package: "./cmd/feira", Test: "TestFaultCheckoutsRepeated"},
	},
}
