//nolint:revive // EventType and EventKey are documented where they are declared, in Event
package events

import "github.com/feira-shop/feira/shared/money"

// PointsEarned gives a customer points for what they paid.
type PointsEarned struct {
	Customer string      `json:"customer"`
	Order    string      `json:"order"`
	Points   int64       `json:"points"`
	Paid     money.Money `json:"paid"`
}

// PointsReversed takes points back with a refund.
type PointsReversed struct {
	Customer string `json:"customer"`
	Order    string `json:"order"`
	Points   int64  `json:"points"`
}

func (PointsEarned) EventType() string   { return "shop.feira.points.earned.v1" }
func (PointsReversed) EventType() string { return "shop.feira.points.reversed.v1" }

func (e PointsEarned) EventKey() string   { return e.Customer }
func (e PointsReversed) EventKey() string { return e.Customer }
