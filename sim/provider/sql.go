package provider

import (
	"embed"
	"io/fs"

	"github.com/feira-shop/feira/shared/pg"
)

//go:embed migrations/*.sql
var migrations embed.FS

// Migrations makes the provider's tables.
func Migrations() pg.Set {
	files, err := fs.Sub(migrations, "migrations")
	if err != nil {
		files = migrations // cannot happen: the folder is compiled in
	}
	return pg.Set{Name: "provider", FS: files}
}

var (
	//go:embed sql/claim_keys.sql
	claimKeysSQL string
	//go:embed sql/lock_keys.sql
	lockKeysSQL string
	//go:embed sql/lock_authorization.sql
	lockAuthorizationSQL string
	//go:embed sql/save_authorization.sql
	saveAuthorizationSQL string
	//go:embed sql/add_entry.sql
	addEntrySQL string
	//go:embed sql/remember_answer.sql
	rememberAnswerSQL string
	//go:embed sql/count_failure.sql
	countFailureSQL string
	//go:embed sql/void_key.sql
	voidKeySQL string
	//go:embed sql/answer.sql
	answerSQL string
	//go:embed sql/entries.sql
	entriesSQL string
	//go:embed sql/ledger.sql
	ledgerSQL string
)
