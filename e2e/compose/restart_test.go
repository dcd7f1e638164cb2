//go:build e2e

package compose

import (
	"testing"

	"github.com/feira-shop/feira/api"
)

// What is down comes up with everything that it had, because volumes stay.
func TestDownAndUpKeepEveryOrder(t *testing.T) {
	o, token := buy(t, "before down")
	before := verified(t)
	if err := shop.end(t.Context(), nil, "down"); err != nil {
		t.Fatal(err)
	}
	if all, err := shop.containers(t.Context()); err != nil || len(all) > 0 {
		t.Fatalf("after down there are %d containers, %v", len(all), err)
	}
	shop.must(t, "up", "--wait")
	if after := verified(t); after != before {
		t.Errorf("there were %d orders, now there are %d", before, after)
	}
	if again, _ := buyWith(t, token, "before down"); again.Id != o.Id {
		t.Errorf("the same key made another order: %s, %s", again.Id, o.Id)
	}
	if o, _ := buyWith(t, token, "after up"); o.Status != api.OrderStatusConfirmed {
		t.Errorf("after up the order is %s", o.Status)
	}
}
