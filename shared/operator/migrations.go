package operator

import (
	"embed"
	"io/fs"

	"github.com/feira-shop/feira/shared/pg"
)

//go:embed migrations/*.sql
var migrationFiles embed.FS

// Migrations are the operator's tables and its commit function. They come after eventstore's.
func Migrations() pg.Set {
	files, err := fs.Sub(migrationFiles, "migrations")
	if err != nil { // the folder is embedded above
		files = migrationFiles
	}
	return pg.Set{Name: "operator", FS: files}
}
