package seed

import (
	"regexp"
	"slices"
	"testing"
)

func TestProducts(t *testing.T) {
	t.Parallel()
	list := Products()
	if len(list) < 40 {
		t.Fatalf("%d products, want at least 40", len(list))
	}
	sku := regexp.MustCompile(`^[A-Z0-9][A-Z0-9-]{2,39}$`)
	var scarce int
	for _, p := range list {
		if !sku.MatchString(p.SKU) || p.Name == "" || p.Price.Amount <= 0 || p.Price.Currency != "BRL" || p.Stock <= 0 {
			t.Errorf("bad product %+v", p)
		}
		if p.Scarce {
			scarce++
		}
	}
	if scarce == 0 {
		t.Error("no scarce product: nothing would ever sell out")
	}
	if !slices.IsSortedFunc(list, func(a, b Product) int {
		if a.SKU < b.SKU {
			return -1
		}
		return 1
	}) {
		t.Error("not sorted by SKU, or one occurs twice")
	}
}

func TestParseNamesTheRow(t *testing.T) {
	t.Parallel()
	if _, err := parse([]byte("sku,name,description,price,stock,scarce\nA,B,C,1.5,1,\n")); err == nil {
		t.Fatal("a price with decimals was accepted")
	}
}
