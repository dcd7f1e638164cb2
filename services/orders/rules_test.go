package orders

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/money"
)

func TestTheIDFollowsFromCustomerAndKey(t *testing.T) {
	t.Parallel()
	first := OrderID("ana", "k")
	for _, other := range []string{OrderID("bia", "k"), OrderID("ana", "k2"), OrderID("an", "ak"), OrderID("ana\x00k", "")} {
		if other == first {
			t.Error("two requests have one id")
		}
	}
	// Part of the contract: another id would make an old key a new order.
	if first != OrderID("ana", "k") || first != "487e9dde-34fa-5a36-a79f-71b087f15595" {
		t.Errorf("the id is %s", first)
	}
}

func TestNumbersAreForPeople(t *testing.T) {
	t.Parallel()
	form := regexp.MustCompile(`^[0-9A-HJKMNP-TV-Z]{4}(-[0-9A-HJKMNP-TV-Z]{4}){2}$`)
	seen := map[string]bool{}
	for i := range 20_000 {
		n := Number(OrderID("ana", fmt.Sprint(i)))
		if !form.MatchString(n) || seen[n] {
			t.Fatalf("number %q", n)
		}
		seen[n] = true
	}
	for order, want := range map[string]string{
		"ffffffff-ffff-ffff-ffff-ffffffffffff": "ZZZZ-ZZZZ-ZZZZ",
		"00000000-0000-ffff-ffff-000fffffffff": "0000-0000-0000",
		"no id":                                "",
	} {
		if got := Number(order); got != want {
			t.Errorf("Number(%s) = %q, want %q", order, got, want)
		}
	}
}

func TestTokens(t *testing.T) {
	t.Parallel()
	for token, want := range map[string]string{
		"tok_visa_ana1":                "",
		"tok_visa_4f3a2b1c_1700000001": "",
		"tok_4111111111111112":         "", // fails the check
		"tok_41111111111":              "", // too short for a card
		"tok_3ds":                      "not_supported",
		"tok_3ds_fails_x":              "not_supported",
		"4111111111111111":             "card_number_refused",
		"4111 1111 1111 1111":          "card_number_refused",
		"4111-1111-1111-1111":          "card_number_refused",
		"3782.822463.10005":            "card_number_refused", // American Express
		"6304000000000000000":          "card_number_refused", // 19 digits
		"tok_4111111111111111":         "card_number_refused",
		"tok_4111_1111_1111_1111":      "card_number_refused",
		"tok_visa_4111111111111111":    "card_number_refused",
		"tok_visa_5555555555554444_x":  "card_number_refused",
		"visa_ana1":                    "invalid_token",
		"":                             "invalid_token",
		"4111111111111112":             "invalid_token",
	} {
		err := CheckToken(token)
		var refused *RefusedTokenError
		if got := errors.As(err, &refused); got != (want != "") || got && refused.Code != want {
			t.Errorf("%q: %v, want %q", token, err, want)
		}
	}
}

// FuzzCheckToken: a card number is refused however it is written, and no error repeats the token.
func FuzzCheckToken(f *testing.F) {
	for _, s := range []string{"tok_visa", "4111111111111111", "tok_", "٤١١١", "tok_visa_\xff"} {
		f.Add(s, uint64(411111111111111))
	}
	f.Fuzz(func(t *testing.T, s string, digits uint64) {
		_ = CheckToken(s) // whatever it is
		pan := withCheckDigit(fmt.Sprintf("%015d", digits%1e15))
		for _, form := range []string{pan, "tok_" + pan, "tok_visa_" + pan, pan[:4] + "-" + pan[4:8] + " " + pan[8:], "tok_x" + pan + "y"} {
			var refused *RefusedTokenError
			if !errors.As(CheckToken(form), &refused) || refused.Code != "card_number_refused" {
				t.Errorf("%q was not refused as a card number", form)
			} else if strings.Contains(refused.Error(), pan[:6]) {
				t.Errorf("the error repeats the number: %v", refused)
			}
		}
	})
}

// withCheckDigit appends the digit that makes a number pass, found by trying.
func withCheckDigit(number string) string {
	for d := range 10 {
		sum := 0
		full := number + fmt.Sprint(d)
		for i := range len(full) {
			n := int(full[i] - '0')
			if (len(full)-i)%2 == 0 {
				n = n*2/10 + n*2%10
			}
			sum += n
		}
		if sum%10 == 0 {
			return full
		}
	}
	return ""
}

func TestPricesAreOurs(t *testing.T) {
	t.Parallel()
	sold := map[string]product{
		"A": {SKU: "A", Name: "Apple", Amount: 1000, Currency: "BRL", Active: true},
		"B": {SKU: "B", Name: "Bread", Amount: 500, Currency: "BRL"},
		"C": {SKU: "C", Name: "Cake", Amount: 300, Currency: "USD", Active: true},
	}
	lines, err := priceLines([]events.Quantity{{SKU: "A", Quantity: 3}, {SKU: "A", Quantity: 1}}, sold)
	if err != nil || len(lines) != 2 || lines[0].Total != money.BRL(3000) || lines[1].Total != money.BRL(1000) || lines[0].Name != "Apple" {
		t.Errorf("%+v, %v", lines, err)
	}
	for i, sku := range []string{"B", "Z"} { // not sold any more, never sold
		_, err := priceLines([]events.Quantity{{SKU: "A", Quantity: 1}, {SKU: sku, Quantity: 1}}, sold)
		var unknown *UnknownProductError
		if !errors.As(err, &unknown) || unknown.Line != 1 || unknown.SKU != sku || unknown.Inactive != (sku == "B") {
			t.Errorf("case %d: %v", i, err)
		}
	}
	var overflow *money.OverflowError
	if _, err := priceLines([]events.Quantity{{SKU: "A", Quantity: 1 << 60}}, sold); !errors.As(err, &overflow) {
		t.Errorf("a huge quantity: %v", err)
	}
}

func TestShipping(t *testing.T) {
	t.Parallel()
	line := func(amount int64, currency string) events.Line {
		return events.Line{UnitPrice: money.New(amount, currency), Total: money.New(amount, currency)}
	}
	for _, c := range []struct {
		lines []events.Line
		want  money.Money
	}{
		{[]events.Line{line(19_999, "BRL")}, money.BRL(990)},
		{[]events.Line{line(20_000, "BRL")}, money.BRL(0)},
		{[]events.Line{line(10_000, "BRL"), line(10_000, "BRL")}, money.BRL(0)},
		{[]events.Line{line(1, "USD")}, money.New(0, "USD")},
	} {
		if got, err := shippingFor(c.lines); err != nil || got != c.want {
			t.Errorf("%v: %v, %v", c.lines, got, err)
		}
	}
	var mismatch *money.MismatchError
	if _, err := shippingFor([]events.Line{line(1, "BRL"), line(1, "USD")}); !errors.As(err, &mismatch) {
		t.Errorf("two currencies: %v", err)
	}
	var sum *SumError
	if _, err := shippingFor(nil); !errors.As(err, &sum) {
		t.Errorf("no lines: %v", err)
	}
}
