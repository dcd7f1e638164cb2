package shoptest_test

import (
	"testing"
	"time"

	"github.com/feira-shop/feira/internal/shoptest"
)

// hold is how long the tests' shops hold a suspected duplicate.
const hold = 4 * time.Second

// TestShop runs everything that leaves others undisturbed in one shop.
func TestShop(t *testing.T) {
	t.Parallel()
	s := shoptest.Start(t, shoptest.Options{Hold: hold})
	for name, test := range map[string]func(*testing.T, *shoptest.Shop){
		"Checkout": checkout, "CheckoutAsPlaced": checkoutAsPlaced, "CheckoutIsQuick": checkoutIsQuick,
		"History": history, "Live": live, "Conditions": conditions,
		"DuplicateLeft": duplicateLeft, "DuplicateReleased": duplicateReleased, "NotDuplicates": notDuplicates,
		"LastPieces": lastPieces,
		"Declined":   declined, "Hiccups": hiccups, "CaptureFails": captureFails, "CancelledBefore": cancelledBefore,
		"CancelledAfter": cancelledAfter, "Refunds": refunds, "RefundFails": refundFails,
	} {
		t.Run(name, func(t *testing.T) {
			test(t, s)
		})
	}
}
