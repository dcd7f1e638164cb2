// Package flink holds Apache Flink and the shop's own stream operators to one answer. One generated history of payments
// goes to a Kafka in a container; deployments/flink's windows.sql and duplicates.sql run over it on Flink, analytics and
// fraud run over it as they are; and all four outputs are compared, row by row, with what a naive computation makes of
// the same history. What each cost is printed side by side. Its test has the build tag e2e; run it with
//
//	make flink                   2,000,000 events; needs Docker, a JDK, Maven and Postgres' programs
//	make flink EVENTS=200000     in some three minutes on two cores
//	make flink SEED=7            another history; each run prints its seed
package flink
