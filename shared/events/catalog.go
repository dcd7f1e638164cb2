//nolint:revive // EventType and EventKey are documented where they are declared, in Event
package events

import "github.com/feira-shop/feira/shared/money"

// ProductChanged is a whole product as it is from now on; the latest one per sku is the catalogue.
type ProductChanged struct {
	SKU         string      `json:"sku"`
	Name        string      `json:"name"`
	Description string      `json:"description"`
	Price       money.Money `json:"price"`
	Active      bool        `json:"active"`
}

func (ProductChanged) EventType() string  { return "shop.feira.product.changed.v1" }
func (e ProductChanged) EventKey() string { return e.SKU }
