package eventstore

import (
	"embed"
	"io/fs"

	"github.com/feira-shop/feira/shared/pg"
)

//go:embed migrations/*.sql
var migrations embed.FS

// Migrations make the store's tables and functions. They come before every other set of a service.
func Migrations() pg.Set {
	files, err := fs.Sub(migrations, "migrations")
	if err != nil { // only for an invalid name
		files = migrations
	}
	return pg.Set{Name: "eventstore", FS: files}
}
