package shoptest_test

import (
	"testing"
	"time"

	"github.com/feira-shop/feira/internal/shoptest"
	"github.com/feira-shop/feira/internal/shoptest/journeys"
)

// hold is how long the tests' shops hold a suspected duplicate.
const hold = 4 * time.Second

// TestShop lets all of them loose on one shop, and then looks at what they left behind.
func TestShop(t *testing.T) {
	t.Parallel()
	s := shoptest.Start(t, shoptest.Options{Hold: hold})
	t.Run("Checkout", func(t *testing.T) { journeys.Checkout(t, s) })
	t.Run("Together", func(t *testing.T) {
		for name, test := range journeys.Together {
			t.Run(name, func(t *testing.T) { test(t, s) })
		}
	})
	t.Run("Contract", func(t *testing.T) { journeys.Contract(t, s, false) })
	t.Run("Metrics", func(t *testing.T) { metrics(t, s) })
	t.Run("MetricsAreDocumented", func(t *testing.T) { documented(t, s) })
	t.Run("NoCardNumbers", func(t *testing.T) { journeys.NoCardNumbers(t, s, s.Log.String()) })
	t.Run("AddedLater", func(t *testing.T) { addedLater(t, s) })
}
