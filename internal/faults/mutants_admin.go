package main

var adminMutants = []mutant{
	{
		Protection: "the epoch raised when a rebuilt table takes the place of the old one",
		File:       "shared/operator/rebuild_switch.go",
		Old:        "set epoch = epoch + 1 where operator",
		New:        "set epoch = epoch where operator",
		test:       test{Package: "./shared/operator", Test: "TestFaultRebuildFencesWhatWasReadBefore"},
	},
	{
		Protection: "the end of a dry run of a replay, which nothing can commit",
		File:       "shared/operator/migrations/00003_trials.sql",
		Old:        "raise exception 'rehearsed, and rolled back' using errcode = 'FE009';",
		New:        "null;",
		test:       test{Package: "./shared/operator", Test: "TestATrialSaysWhatAReplayWouldComeToAndChangesNothing"},
	},
	{
		Protection: "the checkpoint that a replay leaves where it is",
		File:       "shared/operator/replay.go",
		Old:        "to: s.claim.saved}",
		New:        "to: position{next: s.claim.saved.next + 1, source: s.claim.saved.source}}",
		test:       test{Package: "./shared/operator", Test: "TestAReplayMovesNoCheckpoint"},
	},
}
