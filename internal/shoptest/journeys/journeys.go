// Package journeys is what customers do in a shop, good and bad, and what must come of it. The same journeys run in a
// shop inside the test's process and in one of real processes, Kafka and Postgres.
package journeys

import (
	"testing"

	"github.com/feira-shop/feira/internal/shoptest"
)

// Together are all journeys but [Checkout], by name. They leave each other undisturbed in one shop and run at the same time;
// its hold on suspected duplicates should be a few seconds, since one of them waits for its end.
var Together = map[string]func(*testing.T, *shoptest.Shop){
	"CheckoutAsPlaced": checkoutAsPlaced, "CheckoutIsQuick": checkoutIsQuick,
	"History": history, "Live": live, "Conditions": conditions,
	"DuplicateLeft": duplicateLeft, "DuplicateReleased": duplicateReleased, "NotDuplicates": notDuplicates,
	"LastPieces": lastPieces,
	"Declined":   declined, "Hiccups": hiccups, "CaptureFails": captureFails, "CancelledBefore": cancelledBefore,
	"CancelledAfter": cancelledAfter, "Refunds": refunds, "RefundFails": refundFails,
	"BadInput": badInput, "BadBodies": badBodies, "AnyText": anyText,
	"RepeatedAtOnce": repeatedAtOnce, "ChangedAtOnce": changedAtOnce,
	"Clicks": clicks, "Spend": spend,
	"OthersOrders": othersOrders, "BadTokens": badTokens,
}
