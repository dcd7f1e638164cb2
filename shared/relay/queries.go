package relay

import (
	"embed"
	"io/fs"

	"github.com/feira-shop/feira/shared/pg"
)

//go:embed migrations
var migrations embed.FS

// Migrations are the relay's tables, in the store's database; they come after those of the store.
func Migrations() pg.Set {
	// The folder is embedded, so there is always one.
	files, _ := fs.Sub(migrations, "migrations")
	return pg.Set{Name: "relay", FS: files}
}

// The statements of a leader.
var (
	//go:embed sql/take.sql
	takeSQL string
	//go:embed sql/evict.sql
	evictSQL string
	//go:embed sql/read.sql
	readSQL string
	//go:embed sql/save.sql
	saveSQL string
	//go:embed sql/backlog.sql
	backlogSQL string
	//go:embed sql/missing.sql
	missingSQL string
)
