//go:build e2e

package flink

import (
	"os"
	"testing"

	"github.com/testcontainers/testcontainers-go/log"
)

func TestMain(m *testing.M) {
	// Ports are on this machine's loopback, and each test removes its container itself: the image of testcontainers' own
	// reaper cannot be fetched everywhere.
	for name, value := range map[string]string{"TESTCONTAINERS_HOST_OVERRIDE": "127.0.0.1", "TESTCONTAINERS_RYUK_DISABLED": "true"} {
		if os.Getenv(name) == "" {
			_ = os.Setenv(name, value) // the name is a good one
		}
	}
	log.SetDefault(log.NewNoopLogger())
	os.Exit(m.Run())
}
