package main

var operatorMutants = []mutant{
	{
		Protection: "the epoch condition of an operator's commit",
		File:       "shared/operator/migrations/00002_op_commit.sql",
		Old:        "k.epoch = w.epoch and ",
		test:       test{Package: "./shared/operator", Test: "TestFaultFrozenOwner"},
	},
	{
		Protection: "the epoch raised by a new owner",
		File:       "shared/operator/queries/raise.sql",
		Old:        "set epoch = k.epoch + 1",
		New:        "set epoch = k.epoch",
		test:       test{Package: "./shared/operator", Test: "TestFaultFrozenOwner"},
	},
	{
		Protection: "the end of a session after a fence",
		File:       "shared/operator/session.go",
		Old:        "	case <-c.ended:\n\t\treturn nil, false\n",
		test:       test{Package: "./shared/operator", Test: "TestFaultFencedClaim"},
	},
	{
		Protection: "the chain of positions",
		File:       "shared/operator/position.go",
		Old:        "if it.rec.Previous > p.source && !p.adopt {",
		New:        "if false {",
		test:       test{Package: "./shared/operator", Test: "TestFaultMissingRecord"},
	},
	{
		Protection: "the source position",
		File:       "shared/operator/position.go",
		Old:        "if it.rec.Sequence <= p.source {",
		New:        "if false {",
		test:       test{Package: "./shared/operator", Test: "TestFaultDuplicates"},
	},
	{
		Protection: "the offset in the transaction of the effects",
		File:       "shared/operator/commit.go",
		Old:        `	if err := tx.Commit(ctx, "op_commit", b.checkpoints(l.op.def.Name)...); err != nil {`,
		New: `	if err := tx.Commit(ctx, "es_commit"); err != nil {
		return err
	}
	if err := l.op.hooks.at(afterCommit, l.op.def.Name); err != nil {
		return err
	}
	later, err := l.op.store.BeginIn(ctx, l.op.pool)
	if err != nil {
		return err
	}
	defer later.Rollback()
	if err := later.Commit(ctx, "op_commit", b.checkpoints(l.op.def.Name)...); err != nil {`,
		test: test{Package: "./shared/operator", Test: "TestFaultKilledOperator"},
	},
	{
		Protection: "the watch over the topics' ids",
		File:       "shared/operator/guard.go",
		Old:        `if err != nil || want == "" || have == want {`,
		New:        "if true {",
		test:       test{Package: "./shared/operator", Test: "TestFaultTopicRecreatedUnseen"},
	},
	{
		Protection: "the look at the checkpoint before the error",
		File:       "shared/operator/process.go",
		Old:        "		switch l.resolve(ctx, b, err) {",
		New:        "		if classify(err) == deterministic {\n			return l.narrow(ctx, b, err)\n		}\n		switch l.resolve(ctx, b, err) {",
		test:       test{Package: "./shared/operator", Test: "TestFaultWakingOwner"},
	},
	{
		Protection: "parking by key",
		File:       "shared/operator/batch.go",
		Old:        "case s.fate == applied && (here[s.order] || p.claim.blocked[s.order] > 0):",
		New:        "case false:",
		test:       test{Package: "./shared/operator", Test: "TestFaultRebalances"},
	},
	{
		Protection: "the halving of a batch down to the event at fault",
		File:       "shared/operator/process.go",
		Old:        "if b.handed() <= 1 {",
		New:        "if true {",
		test:       test{Package: "./shared/operator", Test: "TestFaultRebalances"},
	},
	{
		Protection: "the halving of a batch that takes too long",
		File:       "shared/operator/process.go",
		Old:        " || class == tooLong && b.handed() > 1 {",
		New:        " {",
		test:       test{Package: "./shared/operator", Test: "TestFaultSlowBatch"},
	},
	{
		Protection: "the patience with errors that pass",
		File:       "shared/operator/classify.go",
		Old:        "	return deterministic\n	}\n	return transient",
		New:        "	return deterministic\n	}\n	return deterministic",
		test:       test{Package: "./shared/operator", Test: "TestFaultRebalances"},
	},
	{
		Protection: "the patience with cancelled handlers",
		File:       "shared/operator/classify.go",
		Old:        "if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {",
		New:        "if false && errors.Is(err, context.Canceled) {",
		test:       test{Package: "./shared/operator", Test: "TestFaultCancelledHandler"},
	},
	{
		Protection: "the look at a commit whose outcome is unknown",
		File:       "shared/operator/outcome.go",
		Old:        "	wait := backoff{}\n",
		New:        "	if errors.Is(cause, eventstore.ErrUnknown) {\n		return outcomeCommitted\n	}\n	wait := backoff{}\n",
		test:       test{Package: "./shared/operator", Test: "TestFaultCutCommits"},
	},
	{
		Protection: "the bar before a commit whose outcome is unknown",
		File:       "shared/operator/outcome.go",
		Old:        "	if bar {",
		New:        "	if false {",
		test:       test{Package: "./shared/operator", Test: "TestFaultCutReplay"},
	},
	{
		Protection: "the comparison of a checkpoint with the log",
		File:       "shared/operator/takeover.go",
		Old:        "	case row.Next < first:\n",
		New:        "	case row.Next < first && false:\n",
		test:       test{Package: "./shared/operator", Test: "TestFaultHistoryLost"},
	},
	{
		Protection: "the topic's id in the checkpoint",
		File:       "shared/operator/takeover.go",
		Old:        `if row.TopicID != "" && row.TopicID != id {`,
		New:        "if false {",
		test:       test{Package: "./shared/operator", Test: "TestFaultTopicRecreated"},
	},
	{
		Protection: "the discarding of state in memory after a rollback",
		File:       "shared/stream/process.go",
		Old:        "	if !committed {\n		p.discard()\n		return\n	}\n",
		test:       test{Package: "./shared/stream", Test: "TestFaultStateInMemory"},
	},
	{
		Protection: "the state saved with its checkpoint",
		File:       "shared/stream/process.go",
		Old:        "	return p.save(tx)\n",
		New:        "	return nil\n",
		test:       test{Package: "./shared/stream", Test: "TestFaultStateInMemory"},
	},
	{
		Protection: "the fence of a closing",
		File:       "shared/operator/closing.go",
		Old:        `tx.Commit(ctx, "op_commit", batch{still(c)}.checkpoints(l.op.def.Name)...)`,
		New:        `tx.Commit(ctx, "es_commit")`,
		test:       test{Package: "./shared/operator", Test: "TestFaultFencedClosing"},
	},
	{
		Protection: "the minimum of all watermarks",
		File:       "shared/stream/sql/horizon.sql",
		Old:        "min(m.watermark) as lowest",
		New:        "max(m.watermark) as lowest",
		test:       test{Package: "./shared/stream", Test: "TestFaultWindowsInAnyOrder"},
	},
	{
		Protection: "the wait for partitions that have said nothing yet",
		File:       "shared/stream/sql/horizon.sql",
		Old:        " and l.unknown = 0",
		test:       test{Package: "./shared/stream", Test: "TestFaultWindowsInAnyOrder"},
	},
	{
		Protection: "the judging of lateness by the event's own partition",
		File:       "shared/stream/windower.go",
		Old:        "case w.windows.late(pane, watermark):",
		New:        "case w.windows.late(pane, w.lowest()):",
		test:       test{Package: "./shared/operator", Test: "TestFaultStreamOracle"},
	},
	{
		Protection: "the quarantine of events from the future",
		File:       "shared/stream/windower.go",
		Old:        "case from.quarantines(r, at):",
		New:        "case false:",
		test:       test{Package: "./shared/stream", Test: "TestFaultWindowsInAnyOrder"},
	},
	{
		Protection: "the deletion of partial values with the closing",
		File:       "shared/stream/sql/close.sql",
		Old:        "pane <= $4",
		New:        "pane <= $4 and false",
		test:       test{Package: "./shared/stream", Test: "TestFaultWindowsInAnyOrder"},
	},
	{
		Protection: "the place where a closing in several transactions goes on",
		File:       "shared/stream/close.go",
		Old:        "if i == 0 && key <= from.key {",
		New:        "if i < 0 {",
		test:       test{Package: "./shared/stream", Test: "TestFaultWindowsInAnyOrder"},
	},
	{
		Protection: "the count of partitions in a closing",
		File:       "shared/stream/ahead.go",
		Old:        "if n != w.ahead.partitions {",
		New:        "if n < 0 {",
		test:       test{Package: "./shared/stream", Test: "TestAPartitionIsAddedBeforeAClosing"},
	},
	{
		Protection: "the lock on which an added partition waits for a closing",
		File:       "shared/stream/ahead.go",
		Old:        " for update",
		test:       test{Package: "./shared/stream", Test: "TestAPartitionIsAddedDuringAClosing"},
	},
	{
		Protection: "the discarding of watermarks after a rollback",
		File:       "shared/stream/windower.go",
		Old:        "if committed && w.pending != nil {",
		New:        "if w.pending != nil {",
		test:       test{Package: "./shared/stream", Test: "TestFaultWindowsInAnyOrder"},
	},
	{
		Protection: "the ledger in the transaction of its batch",
		File:       "shared/stream/windower.go",
		Old:        "	h.ledger.save(tx, w.name)\n",
		test:       test{Package: "./shared/stream", Test: "TestFaultWindowsInAnyOrder"},
	},
	{
		Protection: "the adding up of rows that are merged",
		File:       "shared/stream/compact.go",
		Old:        "			w.merge(h.partials[p], key, v)\n",
		New:        "			_, _ = key, v\n",
		test:       test{Package: "./shared/stream", Test: "TestFaultWindowsInAnyOrder"},
	},
	{
		Protection: "the next revision of a result that differs",
		File:       "shared/stream/revise.go",
		Old:        "	if dry || len(next) == 0 {",
		New:        "	if true {",
		test:       test{Package: "./shared/stream", Test: "TestFaultRebuildOfWindows"},
	},
}
