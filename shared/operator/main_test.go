package operator

import (
	"flag"
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/feira-shop/feira/shared/pg/pgtest"
)

func TestMain(m *testing.M) {
	if os.Getenv(helperDSN) != "" {
		os.Exit(runHelper())
	}
	// The tests wait for sessions, timeouts and outages far more than they compute.
	flag.Parse()
	if err := flag.Set("test.parallel", "8"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	// Toxiproxy forgets now and then a goroutine of a connection that ends while it is made worse.
	pgtest.Main(m, goleak.IgnoreAnyFunction("github.com/Shopify/toxiproxy/v2/toxics.(*ToxicStub).Run"))
}
