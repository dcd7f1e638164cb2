// Package e2e proves the shop on real infrastructure: Kafka and Postgres in containers that are stopped and killed,
// every service in a process of its own, driven over the public API and observed over Kafka. Its tests have the build
// tag e2e; run them with
//
//	make e2e                     Kafka 4.4 and Postgres in containers
//	make e2e KAFKA=4.0.0         another version
//	make e2e KAFKA=embedded      the embedded broker and Postgres, each in a process of its own; needs no Docker
//
// The README beside this file says what else can be set.
package e2e
