package shoptest_test

import (
	"flag"
	"testing"

	"go.uber.org/goleak"

	"github.com/feira-shop/feira/shared/pg/pgtest"
)

// TestMain lets more tests run at once than there are processors: they mostly wait for events to travel and for holds
// and deadlines to end.
func TestMain(m *testing.M) {
	flag.Parse()
	_ = flag.Set("test.parallel", "16") // the flag exists in every test binary
	// sarama's metrics keep one goroutine for the process.
	pgtest.Main(m, goleak.IgnoreTopFunction("github.com/rcrowley/go-metrics.(*meterArbiter).tick"))
}
