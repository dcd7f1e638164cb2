// Package kafka is how the shop talks to Kafka: one effective configuration with TLS and sign-in, the topics as they must
// exist, a publisher that keeps the order of every partition through any error, the subscriber that operators build on,
// an inspection that names what is unsafe in a cluster, and a broker that runs inside the process.
package kafka
