package main

var (
	anyBatches = test{Package: "./shared/stream", Test: "TestFaultAnyBatchesAndAnyKills"}
	logSize    = test{Package: "./shared/stream", Test: "TestTheLogIsAsLargeAsTheState"}
	goneKey    = test{Package: "./shared/stream", Test: "TestAKeyThatIsGoneDoesNotComeBack"}
)

var streamMutants = []mutant{
	{
		Protection: "the time that events of other types tell",
		File:       "shared/stream/stream.go",
		Old:        "		def.Clock[s.topic.Name] = !s.other\n",
		test:       test{Package: "./shared/stream", Test: "TestWindowsCloseByEventsOfOtherTypes"},
	},
	{
		Protection: "the time told by records that were passed over before a batch",
		File:       "shared/operator/claim.go",
		Old:        "!c.clock.IsZero()",
		New:        "false",
		test:       test{Package: "./shared/operator", Test: "TestTheTimeOfOtherEventsDoesNotDependOnBatches"},
	},
	{
		Protection: "the discarding of a batch that is applied again without having been settled",
		File:       "shared/stream/process.go",
		Old:        "	p.discard() // a batch that lost a partition is applied again without having been settled\n",
		test:       anyBatches,
	},
	{
		Protection: "the timers given back after a rollback",
		File:       "shared/stream/overlay.go",
		Old:        "	for _, t := range o.fired {\n		o.base.timers.add(t)\n	}\n",
		test:       anyBatches,
	},
	{
		Protection: "the timers of a state that is restored",
		File:       "shared/stream/delta.go",
		Old:        "				s.timers.add(timer{e.timer, sv.Key})\n",
		test:       anyBatches,
	},
	{
		Protection: "the order of timers that are due at one time",
		File:       "shared/stream/timers.go",
		Old:        "cmp.Or(cmp.Compare(t.at, u.at), cmp.Compare(t.key, u.key)) < 0",
		New:        "cmp.Compare(t.at, u.at) < 0",
		test:       anyBatches,
	},
	{
		Protection: "the state that is needed until its timer",
		File:       "shared/stream/process.go",
		Old:        "			until = max(until, timer)\n",
		test:       anyBatches,
	},
	{
		Protection: "the look at what the watermark has left of a state",
		File:       "shared/stream/process.go",
		Old:        "	if dead(e.until, watermark) {\n		var none S",
		New:        "	if false {\n		var none S",
		test:       anyBatches,
	},
	{
		Protection: "the trimming before the rule, which does not depend on batches",
		File:       "shared/stream/process.go",
		Old:        "	return p.rule.Trim(state, time.UnixMicro(watermark).UTC())\n",
		New:        "	return state\n",
		test:       anyBatches,
	},
	{
		Protection: "the expiry of delta rows, which never falls",
		File:       "shared/stream/process.go",
		Old:        "	o.expires = max(o.expires, until)",
		New:        "	o.expires = until",
		test:       anyBatches,
	},
	{
		Protection: "the keys that are carried forward: old rows go although they are needed",
		File:       "shared/stream/log.go",
		Old:        "		if r.live > 0 && r.expires >= watermark {",
		New:        "		if r.live > 10 && r.expires >= watermark {",
		test:       anyBatches,
	},
	{
		Protection: "the cleaning of the log: nothing is carried forward",
		File:       "shared/stream/delta.go",
		Old:        "	o.carry(watermark)\n",
		test:       logSize,
	},
	{
		Protection: "the bound of what a batch carries forward",
		File:       "shared/stream/log.go",
		Old:        "			if len(o.carried) == limit || looks == 0 {",
		New:        "			if false {",
		test:       logSize,
	},
	{
		Protection: "the row that says that a key is gone",
		File:       "shared/stream/delta.go",
		Old:        "		if !c.was && dead(c.now.until, watermark) {",
		New:        "		if dead(c.now.until, watermark) {",
		test:       goneKey,
	},
	{
		Protection: "the list of the states that a row holds",
		File:       "shared/stream/overlay.go",
		Old:        "		o.row.places = append(o.row.places, c.in)\n",
		test:       anyBatches,
	},
	{
		Protection: "the emptying of a place that is given again",
		File:       "shared/stream/table.go",
		Old:        "	*e = entry[S]{}\n",
		test:       anyBatches,
	},
}
