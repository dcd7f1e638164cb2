package operator

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/feira-shop/feira/shared/pg/pgtest"
)

func TestMain(m *testing.M) {
	// Sarama's metrics keep one goroutine per process.
	pgtest.Main(m, goleak.IgnoreTopFunction("github.com/rcrowley/go-metrics.(*meterArbiter).tick"))
}
