package shoptest_test

import (
	"testing"
	"time"

	"github.com/feira-shop/feira/internal/shoptest"
)

// hold is how long the tests' shops hold a suspected duplicate.
const hold = 4 * time.Second

// together are the tests that leave each other undisturbed in one shop.
var together = map[string]func(*testing.T, *shoptest.Shop){
	"Checkout": checkout, "CheckoutAsPlaced": checkoutAsPlaced, "CheckoutIsQuick": checkoutIsQuick,
	"History": history, "Live": live, "Conditions": conditions,
	"DuplicateLeft": duplicateLeft, "DuplicateReleased": duplicateReleased, "NotDuplicates": notDuplicates,
	"LastPieces": lastPieces,
	"Declined":   declined, "Hiccups": hiccups, "CaptureFails": captureFails, "CancelledBefore": cancelledBefore,
	"CancelledAfter": cancelledAfter, "Refunds": refunds, "RefundFails": refundFails,
	"BadInput": badInput, "BadBodies": badBodies, "AnyText": anyText,
	"RepeatedAtOnce": repeatedAtOnce, "ChangedAtOnce": changedAtOnce,
	"OthersOrders": othersOrders, "BadTokens": badTokens,
}

// TestShop lets all of them loose on one shop, and then looks at what they left behind.
func TestShop(t *testing.T) {
	t.Parallel()
	s := shoptest.Start(t, shoptest.Options{Hold: hold})
	t.Run("Together", func(t *testing.T) {
		for name, test := range together {
			t.Run(name, func(t *testing.T) { test(t, s) })
		}
	})
	t.Run("Contract", func(t *testing.T) { contract(t, s) })
	t.Run("Metrics", func(t *testing.T) { metrics(t, s) })
	t.Run("NoCardNumbers", func(t *testing.T) { noCardNumbers(t, s) })
	t.Run("AddedLater", func(t *testing.T) { addedLater(t, s) })
}
