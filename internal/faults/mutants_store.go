package main

// What the tests of the store and the relay are in.
const (
	inRelay = "./shared/relay"
	inStore = "./shared/eventstore"
	inKafka = "./shared/kafka"
)

var storeMutants = []mutant{
	{
		Protection: "the store lock: each appending transaction has a lock of its own",
		File:       "shared/eventstore/migrations/00001_store.sql",
		Old:        "returns bigint language sql immutable parallel safe as 'select 7310316185537'",
		New:        "returns bigint language sql volatile as 'select txid_current()'",
		test:       test{Package: inRelay, Test: "TestFaultLateCommit"},
	},
	{
		Protection: "the order of locks: rows are locked as requests name them",
		File:       "shared/eventstore/migrations/00001_store.sql",
		Old:        "order by s.stream for update of s;",
		New:        "for update of s;",
		test:       test{Package: inStore, Test: "TestFaultLockOrder"},
	},
	{
		Protection: "one order of locks: operators lock from the other end",
		File:       "shared/eventstore/migrations/00001_store.sql",
		Old:        "order by s.stream for update;",
		New:        "order by s.stream desc for update;",
		test:       test{Package: inStore, Test: "TestFaultLockOrder"},
	},
	{
		Protection: "the place of the store lock, which comes last",
		File:       "shared/eventstore/migrations/00001_store.sql",
		Old:        "begin\n  s := es_streams(a, false);",
		New:        "begin\n  perform pg_advisory_xact_lock(es_lock_key());\n  s := es_streams(a, false);",
		test:       test{Package: inStore, Test: "TestFaultLockOrder"},
	},
	{
		Protection: "the order of a history",
		File:       "shared/eventstore/history.go",
		Old:        "where stream = $1 and version <= $2 order by version",
		New:        "where stream = $1 and version <= $2",
		test:       test{Package: inStore, Test: "TestFaultShuffledTable"},
	},
	{
		Protection: "the ids by which an append of unknown outcome is recognised",
		File:       "shared/eventstore/migrations/00001_store.sql",
		Old:        "and q.id <> '' and e.meta ->> 'id' = q.id",
		New:        "and q.id <> '' and e.meta ->> 'id' = ''",
		test:       test{Package: inStore, Test: "TestFaultUnknownOutcomes"},
	},
	{
		Protection: "the limit of an event's size",
		File:       "shared/eventstore/types.go",
		Old:        "n > MaxEventBytes {",
		New:        "n > MaxEventBytes<<10 {",
		test:       test{Package: inStore, Test: "TestFaultRefusedWhenAppended"},
	},
	{
		Protection: "one batch per partition in flight: the next one overtakes a batch that failed",
		File:       "shared/kafka/produce.go",
		Old:        "\t\treturn fmt.Errorf(\"%s/%d: %w\", d.topic, partition, block.Err), nil",
		New: "\t\td.queues[partition] = append(d.queues[partition][1:], d.queues[partition][0])\n" +
			"\t\treturn fmt.Errorf(\"%s/%d: %w\", d.topic, partition, block.Err), nil",
		test: test{Package: inKafka, Test: "TestFaultProduceErrors"},
	},
	{
		Protection: "the stop of publishing at the first batch that is refused",
		File:       "shared/kafka/produce.go",
		Old:        "\t\treturn nil, fmt.Errorf(\"%s/%d: %w\", d.topic, partition, block.Err)",
		New:        "\t\td.settle(partition, -1)\n\t\treturn nil, fmt.Errorf(\"%s/%d: %w\", d.topic, partition, block.Err)",
		test:       test{Package: inKafka, Test: "TestFaultProduceErrors"},
	},
	{
		Protection: "the stop of the cursor before the first failed event",
		File:       "shared/relay/round.go",
		Old:        "position = max(b.at[acked]-1, l.position)",
		New:        "",
		test:       test{Package: inRelay, Test: "TestFaultCursorStopsBeforeTheFailedEvent"},
	},
	{
		Protection: "the acknowledgement before the cursor moves",
		File:       "shared/relay/round.go",
		Old:        "\t\tl.relay.at(beforeSend)\n",
		New:        "\t\tif err := l.save(ctx, b.last); err != nil {\n\t\t\treturn err\n\t\t}\n\t\tl.relay.at(beforeSend)\n",
		test:       test{Package: inRelay, Test: "TestFaultRelayCrash"},
	},
	{
		Protection: "the chain of positions: each event names the cursor's",
		File:       "shared/relay/round.go",
		Old:        "e.Previous, previous[n] = previous[n], e.Sequence",
		New:        "e.Previous, previous[n] = l.position, e.Sequence",
		test:       test{Package: inRelay, Test: "TestFaultRelayCrash"},
	},
	{
		Protection: "the guard of the partition count",
		File:       "shared/relay/leader.go",
		Old:        "case l.counted != 0:",
		New:        "case n == 0:",
		test:       test{Package: inRelay, Test: "TestFaultAnotherNumberOfPartitions"},
	},
	{
		Protection: "the leader's lock",
		File:       "shared/relay/leader.go",
		Old:        "\t\tif locked {",
		New:        "\t\tif locked || l.term == 0 {",
		test:       test{Package: inRelay, Test: "TestFaultThreeRelays"},
	},
	{
		Protection: "the end of a frozen leader's session",
		File:       "shared/relay/leader.go",
		Old:        "strconv.FormatInt(r.timing.idleSession.Milliseconds(), 10)",
		New:        "strconv.FormatInt(100*r.timing.idleSession.Milliseconds(), 10)",
		test:       test{Package: inRelay, Test: "TestFaultTwoRelays"},
	},
	{
		Protection: "the leader's term",
		File:       "shared/relay/sql/save.sql",
		Old:        "and term = $2 and position = $3",
		New:        "and $2::bigint > 0 and position = $3",
		test:       test{Package: inRelay, Test: "TestFaultEarlierLeader"},
	},
	{
		Protection: "the comparison of log and store after a restore",
		File:       "shared/relay/compare.go",
		Old:        "if len(missing) == 0 {",
		New:        "if len(missing) >= 0 {",
		test:       test{Package: inRelay, Test: "TestFaultRestoredDump"},
	},
}
