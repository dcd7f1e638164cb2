package main

var serviceMutants = []mutant{
	{
		Protection: "the wait of operators for the comparison of store and log",
		File:       "shared/service/start.go",
		Old:        "if !r.pass(ctx) {",
		New:        "if r.gate.open.Store(true); ctx.Err() != nil {",
		test:       test{Package: "./shared/service", Test: "TestFaultRestoredStoreHearsNothing"},
	},
}
