//nolint:revive // EventType and EventKey are documented where they are declared, in Event
package events

// StockReserved answers an order: every line is set aside.
type StockReserved struct {
	Order string     `json:"order"`
	Lines []Quantity `json:"lines"`
}

// Missing says how much of a product was wanted and how much there was.
type Missing struct {
	SKU       string `json:"sku"`
	Wanted    int64  `json:"wanted"`
	Available int64  `json:"available"`
}

// StockRefused answers an order: at least one line was short, so nothing was set aside.
type StockRefused struct {
	Order   string    `json:"order"`
	Missing []Missing `json:"missing"`
}

// StockReleased says that what was set aside for an order is free again.
type StockReleased struct {
	Order string     `json:"order"`
	Lines []Quantity `json:"lines"`
}

// StockReceived says that pieces of a product came in.
type StockReceived struct {
	SKU      string `json:"sku"`
	Quantity int64  `json:"quantity"`
	Receipt  string `json:"receipt"` // id of the delivery; the same receipt counts once
}

func (StockReserved) EventType() string { return "shop.feira.stock.reserved.v1" }
func (StockRefused) EventType() string  { return "shop.feira.stock.refused.v1" }
func (StockReleased) EventType() string { return "shop.feira.stock.released.v1" }
func (StockReceived) EventType() string { return "shop.feira.stock.received.v1" }

func (e StockReserved) EventKey() string { return e.Order }
func (e StockRefused) EventKey() string  { return e.Order }
func (e StockReleased) EventKey() string { return e.Order }
func (e StockReceived) EventKey() string { return e.SKU }
