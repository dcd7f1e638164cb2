//go:build e2e

package e2e

import (
	"cmp"
	"os"
	"strings"
)

// embedded in place of a version runs a component in a process of its own instead of a container.
const embedded = "embedded"

// Versions that run when nothing else is said.
const (
	defaultKafka    = "4.4.0"
	defaultPostgres = "18"
)

// settings are what the environment says.
type settings struct {
	kafka, postgres             string   // versions, or embedded
	kafkaImages, postgresImages []string // the first that is on the machine is taken, else the last is fetched
	givenKafka                  []string // of a Kafka that is somebody else's; none: it is ours
	givenPostgres               string   // address of a superuser of a Postgres that is somebody else's; "": it is ours
	binary                      string   // feira, built already; "": built here
	logs                        string   // folder that keeps the logs; "": they go with everything else
}

// readSettings reads the environment. Images that make images has built come before those of a registry.
func readSettings() settings {
	s := settings{
		kafka: cmp.Or(os.Getenv("KAFKA"), defaultKafka), givenPostgres: os.Getenv("E2E_POSTGRES"),
		binary: os.Getenv("FEIRA_BINARY"), logs: os.Getenv("E2E_LOGS"),
	}
	if addresses := os.Getenv("E2E_KAFKA"); addresses != "" {
		s.givenKafka = strings.Split(addresses, ",")
	}
	s.kafkaImages = []string{"feira-kafka:" + s.kafka, "apache/kafka:" + s.kafka}
	if image := os.Getenv("KAFKA_IMAGE"); image != "" {
		s.kafkaImages = []string{image}
	}
	version := os.Getenv("POSTGRES")
	s.postgres = cmp.Or(version, defaultPostgres)
	s.postgresImages = []string{"feira-postgres:" + s.postgres, "postgres:" + s.postgres}
	if version == "" {
		s.postgresImages = []string{"feira-postgres:15", "postgres:" + defaultPostgres}
	}
	if image := os.Getenv("POSTGRES_IMAGE"); image != "" {
		s.postgresImages = []string{image}
	}
	if version == "" && s.kafka == embedded {
		s.postgres = embedded
	}
	return s
}

// needsDocker tells whether anything runs in a container.
func (s settings) needsDocker() bool {
	return len(s.givenKafka) == 0 && s.kafka != embedded || s.givenPostgres == "" && s.postgres != embedded
}
