// Package eventstore is the append-only store of one service, which is also its outbox.
package eventstore
