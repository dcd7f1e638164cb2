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
	later, err := l.op.store.Begin(ctx)
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
}
