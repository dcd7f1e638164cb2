package money_test

import (
	"encoding/json"
	"errors"
	"math"
	"math/big"
	"testing"

	"pgregory.net/rapid"

	"github.com/feira-shop/feira/shared/money"
)

// amounts draws what is ordinary and what is at the edges of 64 bits.
var amounts = rapid.OneOf(
	rapid.Int64Range(-1_000_000, 1_000_000),
	rapid.Int64(),
	rapid.SampledFrom([]int64{math.MinInt64, math.MinInt64 + 1, -1, 0, 1, math.MaxInt64 - 1, math.MaxInt64}),
)

// agrees checks a result against the same calculation without bounds.
func agrees(t *rapid.T, got money.Money, err error, want *big.Int) {
	t.Helper()
	var overflow *money.OverflowError
	switch {
	case !want.IsInt64():
		if !errors.As(err, &overflow) {
			t.Fatalf("got %v, %v; %s does not fit and must be an OverflowError", got, err, want)
		}
	case err != nil || got.Amount != want.Int64() || got.Currency != "BRL":
		t.Fatalf("got %+v, %v; want %s BRL", got, err, want)
	}
}

func TestCalculationsAreExactOrRefused(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		a, b := amounts.Draw(t, "a"), amounts.Draw(t, "b")
		x, y := big.NewInt(a), big.NewInt(b)
		sum, err := money.BRL(a).Add(money.BRL(b))
		agrees(t, sum, err, new(big.Int).Add(x, y))
		difference, err := money.BRL(a).Sub(money.BRL(b))
		agrees(t, difference, err, new(big.Int).Sub(x, y))
		product, err := money.BRL(a).Times(b)
		if b < 0 {
			var negative *money.NegativeError
			if !errors.As(err, &negative) || negative.N != b {
				t.Fatalf("%d pieces: got %v, %v; want NegativeError", b, product, err)
			}
			return
		}
		agrees(t, product, err, new(big.Int).Mul(x, y))
	})
}

func TestWhatIsAddedCanBeTakenAway(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		a, b := money.BRL(amounts.Draw(t, "a")), money.BRL(amounts.Draw(t, "b"))
		sum, err := a.Add(b)
		if err != nil {
			return
		}
		if back, err := sum.Sub(b); err != nil || back != a {
			t.Fatalf("%v + %v − %v = %v, %v", a, b, b, back, err)
		}
	})
}

func TestNPiecesCostNTimesOne(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		price, n := money.BRL(rapid.Int64Range(0, 1_000_000).Draw(t, "price")), rapid.Int64Range(0, 200).Draw(t, "n")
		want := money.BRL(0)
		for range n {
			var err error
			if want, err = want.Add(price); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := price.Times(n); err != nil || got != want {
			t.Fatalf("got %v, %v; want %v", got, err, want)
		}
	})
}

func TestCurrenciesDoNotMix(t *testing.T) {
	t.Parallel()
	reais, yen := money.BRL(100), money.New(100, "JPY")
	for name, calculate := range map[string]func(money.Money) (money.Money, error){"Add": reais.Add, "Sub": reais.Sub} {
		got, err := calculate(yen)
		var mismatch *money.MismatchError
		if !errors.As(err, &mismatch) || mismatch.Left != "BRL" || mismatch.Right != "JPY" || got != (money.Money{}) {
			t.Errorf("%s: got %v, %v; want MismatchError", name, got, err)
		}
	}
}

func TestPeopleSeeTheCurrencysDecimals(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		m    money.Money
		want string
	}{
		{money.BRL(1999), "19.99 BRL"}, {money.BRL(5), "0.05 BRL"}, {money.BRL(-1999), "-19.99 BRL"},
		{money.New(500, "JPY"), "500 JPY"}, {money.New(1234, "KWD"), "1.234 KWD"},
		{money.New(math.MaxInt64, "BRL"), "92233720368547758.07 BRL"}, {money.New(math.MinInt64, "BRL"), "-92233720368547758.08 BRL"},
		{money.New(7, "???"), "7 ???"}, {money.Money{}, "0 "},
	} {
		if got := c.m.String(); got != c.want {
			t.Errorf("%d %s: got %q, want %q", c.m.Amount, c.m.Currency, got, c.want)
		}
	}
}

func TestValidAndZero(t *testing.T) {
	t.Parallel()
	for code, want := range map[string]bool{"BRL": true, "JPY": true, "KWD": true, "": false, "brl": false, "XXXX": false, "ABC": false} {
		if got := money.New(1, code).Valid(); got != want {
			t.Errorf("%q: valid %v, want %v", code, got, want)
		}
	}
	if !money.BRL(0).IsZero() || !(money.Money{}).IsZero() || money.BRL(-1).IsZero() {
		t.Error("zero is an amount of 0, in whatever currency")
	}
}

func TestJSONComesBackAsItWas(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		want := money.New(amounts.Draw(t, "amount"), rapid.StringMatching(`[A-Z]{3}`).Draw(t, "currency"))
		data, err := json.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		var got money.Money
		if err := json.Unmarshal(data, &got); err != nil || got != want {
			t.Fatalf("%s came back as %+v, %v", data, got, err)
		}
	})
	for _, wrong := range []string{`{"amount":1.5,"currency":"BRL"}`, `{"amount":"1","currency":"BRL"}`, `{"amount":9223372036854775808,"currency":"BRL"}`} {
		if err := json.Unmarshal([]byte(wrong), new(money.Money)); err == nil {
			t.Errorf("%s was taken", wrong)
		}
	}
}
