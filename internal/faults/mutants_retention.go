package main

// What the tests of parts and archives are in.
const inArchive = "./shared/eventstore/archive"

var retentionMutants = []mutant{
	{
		Protection: "one version once across parts: what is inserted is not compared with what was locked",
		File:       "shared/eventstore/migrations/00002_parts.sql",
		Old:        "  perform es_check(a, status);\n",
		New:        "",
		test:       test{Package: inStore, Test: "TestOneVersionOnceAcrossParts"},
	},
	{
		Protection: "the want of a part is no fault of an event",
		File:       "shared/eventstore/sqlstate.go",
		Old:        " || noPart(err) {",
		New:        " {",
		test:       test{Package: inStore, Test: "TestAppendsWaitForAPart"},
	},
	{
		Protection: "the note of what is archived, by which readers know",
		File:       "shared/eventstore/archive/archive.go",
		Old:        "	if err := s.note(ctx, p); err != nil {\n		return p, err\n	}\n",
		New:        "",
		test:       test{Package: inArchive, Test: "TestFaultTenMillionEvents"},
	},
	{
		Protection: "the look at what is archived after a read by position",
		File:       "shared/eventstore/archived.go",
		Old:        "err == nil && after < last",
		New:        "err == nil && after < 0",
		test:       test{Package: inArchive, Test: "TestFaultTenMillionEvents"},
	},
	{
		Protection: "the look at what is archived of a history",
		File:       "shared/eventstore/archived.go",
		Old:        "	if first == 1 {",
		New:        "	if first >= 0 {",
		test:       test{Package: inArchive, Test: "TestArchiveAndBack"},
	},
	{
		Protection: "waiting for the relay before a part is archived",
		File:       "shared/eventstore/archive/archive.go",
		Old:        "	if p.LastPosition > o.Published {",
		New:        "	if p.LastPosition < 0 {",
		test:       test{Package: inArchive, Test: "TestWhatIsRefused"},
	},
	{
		Protection: "the relay's look at what is archived before it leads",
		File:       "shared/relay/leader.go",
		Old:        "	if err := l.readable(ctx); err != nil {\n		return err\n	}\n",
		New:        "",
		test:       test{Package: inRelay, Test: "TestTheRelayDoesWithoutWhatIsArchived"},
	},
	{
		Protection: "the relay's leave to do without what is archived",
		File:       "shared/relay/sql/missing.sql",
		Old:        " and l.position > (select es_archived())",
		New:        "",
		test:       test{Package: inRelay, Test: "TestTheRelayDoesWithoutWhatIsArchived"},
	},
}
