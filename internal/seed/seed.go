// Package seed is what the shop starts with: products, their prices and the first deliveries of stock.
package seed

import (
	"bytes"
	_ "embed"
	"encoding/csv"
	"fmt"
	"strconv"
	"sync"

	"github.com/feira-shop/feira/shared/money"
)

//go:embed products.csv
var raw []byte

// Product is one row of the first catalogue.
type Product struct {
	SKU, Name, Description string
	Price                  money.Money
	Stock                  int64 // pieces of the first delivery
	Scarce                 bool  // never restocked, so that it sells out
}

// Products lists the first catalogue, in the order of the SKUs.
func Products() []Product { return products() }

var products = sync.OnceValue(func() []Product {
	list, err := parse(raw)
	if err != nil {
		panic("internal/seed: " + err.Error()) // the file is compiled in and tested
	}
	return list
})

func parse(file []byte) ([]Product, error) {
	rows, err := csv.NewReader(bytes.NewReader(file)).ReadAll()
	if err != nil {
		return nil, err
	}
	list := make([]Product, 0, len(rows)-1)
	for i, r := range rows[1:] {
		cents, err := strconv.ParseInt(r[3], 10, 64)
		if err != nil {
			return nil, fmt.Errorf("row %d: price %q is not a whole number of centavos", i+2, r[3])
		}
		stock, err := strconv.ParseInt(r[4], 10, 64)
		if err != nil {
			return nil, fmt.Errorf("row %d: stock %q is not a whole number", i+2, r[4])
		}
		list = append(list, Product{r[0], r[1], r[2], money.BRL(cents), stock, r[5] == "yes"})
	}
	return list, nil
}
