package orders

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/money"
)

// Free shipping starts at R$ 200,00; below it, R$ 9,90. Orders in other currencies ship free.
const (
	shippingFee      = 990
	shippingFreeFrom = 200_00
)

// UnknownProductError says that a line names a product that is not sold.
type UnknownProductError struct {
	Line     int // from 0
	SKU      string
	Inactive bool // it is known, and not sold now
}

func (e *UnknownProductError) Error() string {
	return fmt.Sprintf("orders: there is no product %q for sale", e.SKU)
}

// RefusedTokenError says why a payment token is not one.
type RefusedTokenError struct{ Code, Reason string }

func (e *RefusedTokenError) Error() string { return "orders: payment token refused: " + e.Reason }

// The API's description leaves the form to CheckToken, which can say of a card number that it is one.
var tokenForm = regexp.MustCompile(`^tok_[a-z0-9_]+$`)

// CheckToken refuses card numbers by name, and whatever is no token of the provider. The value is never part of
// the error.
func CheckToken(token string) error {
	if hasCardNumber(token) {
		return &RefusedTokenError{"card_number_refused", "a card number is never accepted; send the provider's token (tok_…)"}
	}
	if !tokenForm.MatchString(token) {
		return &RefusedTokenError{"invalid_token", "the provider's tokens are tok_ and lower-case letters, digits and _"}
	}
	if strings.HasPrefix(token, "tok_3ds") {
		return &RefusedTokenError{"not_supported", "3-D Secure is not built yet"}
	}
	return nil
}

// hasCardNumber finds a card number: as the whole value, however it is grouped, or as a run of digits in it.
func hasCardNumber(s string) bool {
	whole := strings.NewReplacer(" ", "", "-", "", ".", "", "_", "").Replace(strings.TrimPrefix(s, "tok_"))
	if isCardNumber(whole) {
		return true
	}
	notDigit := func(r rune) bool { return r < '0' || r > '9' }
	return slices.ContainsFunc(strings.FieldsFunc(s, notDigit), isCardNumber)
}

// isCardNumber applies the Luhn check (ISO/IEC 7812-1) to a value that is made of 12 to 19 digits.
func isCardNumber(digits string) bool {
	if len(digits) < 12 || len(digits) > 19 {
		return false
	}
	sum := 0
	for i := range len(digits) {
		d := int(digits[len(digits)-1-i]) - '0'
		if d < 0 || d > 9 {
			return false
		}
		if i%2 == 1 {
			if d *= 2; d > 9 {
				d -= 9
			}
		}
		sum += d
	}
	return sum%10 == 0
}

// priceLines puts our own prices on what a customer wants.
func priceLines(wanted []events.Quantity, sold map[string]product) ([]events.Line, error) {
	lines := make([]events.Line, len(wanted))
	for i, w := range wanted {
		p, ok := sold[w.SKU]
		if !ok || !p.Active {
			return nil, &UnknownProductError{Line: i, SKU: w.SKU, Inactive: ok}
		}
		price := money.New(p.Amount, p.Currency)
		total, err := price.Times(w.Quantity)
		if err != nil {
			return nil, err
		}
		lines[i] = events.Line{SKU: p.SKU, Name: p.Name, Quantity: w.Quantity, UnitPrice: price, Total: total}
	}
	return lines, nil
}

// shippingFor is what sending the lines costs, in the currency of the first.
func shippingFor(lines []events.Line) (money.Money, error) {
	if len(lines) == 0 {
		return money.Money{}, &SumError{}
	}
	sum := money.New(0, lines[0].UnitPrice.Currency)
	for _, l := range lines {
		var err error
		if sum, err = sum.Add(l.Total); err != nil {
			return sum, err
		}
	}
	fee := money.New(0, sum.Currency)
	if sum.Currency == "BRL" && sum.Amount < shippingFreeFrom {
		fee.Amount = shippingFee
	}
	return fee, nil
}
