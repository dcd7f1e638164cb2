// Package pg is everything Feira needs of Postgres: sessions with server-side timeouts, migrations, and a server
// of its own for the demo and the tests.
package pg
