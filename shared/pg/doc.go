// Package pg is everything Feira needs of Postgres: sessions, migrations, and a server of its own for the demo and
// the tests.
//
// # Sessions
//
// [Open] makes a pool and [Connect] a single session. Every session has these settings:
//
//	idle_in_transaction_session_timeout  3s    a frozen owner must not hold rows
//	lock_timeout                         2s
//	statement_timeout                    10s
//	transaction_timeout                  30s   where the server has it (17 and newer)
//	tcp_keepalives_*, tcp_user_timeout   11 s until a lost network is noticed, on both ends
//	client_connection_check_interval     2s    a killed client's statement does not run on
//	enable_seqscan, jit                  off   plans made while a table is empty must serve when it is full
//	timezone                             UTC
//
// They are sent when the connection is made, so they are what RESET returns to. The server enforces them: a context
// in Go ends nothing in a process that is frozen.
//
// [Figures] are what the server says of a database, for Prometheus.
//
// # Migrations
//
// [Migrate] applies sets of goose files. Each component (event store, relay, operator, a service) has a [Set] and a
// version table of its own.
//
// # The server
//
// [Start] runs Postgres below one directory:
//
//	owner.lock     locked by the process that started the server
//	server.lock    locked by the server itself, its backends included
//	secret         random bytes that the roles' passwords are derived from; 0600
//	postgres.log   what the server says
//	18/            data, by major version; it belongs to the account that Postgres runs as
//
// It uses Postgres 15 or newer from this machine; without one it fetches version 18 once from a Maven repository
// (Maven Central, or FEIRA_MAVEN_URL) and checks it against a pinned digest. Data stays with its major version: when
// that version is no longer installed the start fails and says so, and never begins an empty database beside it.
//
// Postgres refuses root. A process that is root therefore runs it as the user postgres, or nobody, and needs a
// directory that this user may enter: not one below /root.
//
// The server ends with its owner, however that ends: by [Server.Stop]; by the kernel when the owner is killed
// (Linux); by a small shell beside it elsewhere. A start on the same directory then waits for what is still ending.
// While the owner lives a second start is refused with an [InUseError].
//
// It listens on 127.0.0.1 only, has no socket file, and lets nobody in without a password. [Server.CreateDatabase]
// gives each service a role and a database that other services' roles cannot connect to.
package pg
