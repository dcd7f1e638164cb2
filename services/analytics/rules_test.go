package analytics

import (
	"maps"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/feira-shop/feira/shared/events"
)

func drawSales(t *rapid.T, name string) Sales {
	return rapid.MapOf(rapid.SampledFrom([]string{"A", "B", "C", "D"}), rapid.Custom(func(t *rapid.T) Sold {
		return Sold{Quantity: rapid.Int64Range(1, 9).Draw(t, "quantity"), Orders: rapid.Int64Range(1, 9).Draw(t, "orders")}
	})).Draw(t, name)
}

// However events are grouped and ordered, their sum is the same, and adding changes nothing that was there.
func TestSumsAreMonoids(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		a, b, c := drawSales(t, "a"), drawSales(t, "b"), drawSales(t, "c")
		before := []Sales{maps.Clone(a), maps.Clone(b), maps.Clone(c)}
		if x, y := a.Add(b).Add(c), c.Add(a.Add(b)); !reflect.DeepEqual(x, y) && len(x)+len(y) > 0 {
			t.Fatalf("%v and %v", x, y)
		}
		if none := (Sales(nil)).Add(a); len(none) != len(a) {
			t.Fatalf("nothing and %v is %v", a, none)
		}
		if !reflect.DeepEqual(before, []Sales{a, b, c}) {
			t.Fatal("adding changed what was added")
		}
		draw := rapid.Custom(func(t *rapid.T) Spend {
			n := rapid.Int64Range(0, 1<<40)
			return Spend{n.Draw(t, "payments"), n.Draw(t, "captured"), n.Draw(t, "refunds"), n.Draw(t, "refunded")}
		})
		x, y, z := draw.Draw(t, "x"), draw.Draw(t, "y"), draw.Draw(t, "z")
		if x.Add(y).Add(z) != z.Add(x.Add(y)) || (Spend{}).Add(x) != x {
			t.Fatalf("%v, %v, %v", x, y, z)
		}
	})
}

func TestARankingIsBoundedAndFixed(t *testing.T) {
	t.Parallel()
	s := Sales{}
	for _, sku := range "ABCDEFGHIJKLMN" {
		s[string(sku)] = Sold{Quantity: int64('Z'-sku) / 2, Orders: 1}
	}
	top := s.Top()
	if len(top) != Ranked || top[0].SKU != "A" || top[1].SKU != "B" || top[9].SKU != "J" || top[0].Quantity != top[1].Quantity {
		t.Errorf("the ranking is %+v", top)
	}
	if none := (Sales{}).Top(); none == nil || len(none) > 0 {
		t.Errorf("a ranking of nothing is %#v", none)
	}
}

func TestOrdersAreSoldOncePerProduct(t *testing.T) {
	t.Parallel()
	e := events.OrderConfirmed{Lines: []events.Quantity{{SKU: "A", Quantity: 2}, {SKU: "B", Quantity: 1}, {SKU: "A", Quantity: 3}}}
	want := Sales{"A": {Quantity: 5, Orders: 1}, "B": {Quantity: 1, Orders: 1}}
	if got := SalesOf(events.Recorded{Event: e}); !reflect.DeepEqual(got, want) {
		t.Errorf("%v was sold", got)
	}
}

func TestKeysOfAccounts(t *testing.T) {
	t.Parallel()
	for _, account := range []string{"ana", "ana maria", "a-BRL", ""} {
		if a, c := AccountOf(accountKey(account, "BRL")); a != account || c != "BRL" {
			t.Errorf("%q became %q in %q", account, a, c)
		}
	}
}

func TestWrongConfigurations(t *testing.T) {
	t.Parallel()
	for _, wrong := range []Config{
		{Window: time.Millisecond}, {Window: -time.Minute}, {Window: 1500 * time.Millisecond}, {Disorder: -1}, {Lateness: 6 * time.Minute},
	} {
		if wrong.Validate() == nil {
			t.Errorf("%+v was taken", wrong)
		}
	}
	if err := (Config{}).Validate(); err != nil {
		t.Error(err)
	}
}
