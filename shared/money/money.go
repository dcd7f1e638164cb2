// Package money holds amounts as whole minor units of a currency: cents, never floats.
package money

import (
	"fmt"
	"math"

	"github.com/bojanz/currency"
)

// Money is an amount in minor units of an ISO 4217 currency: {1999, "BRL"} is R$ 19,99.
// JPY has no minor unit and KWD has three decimals; the amount counts the smallest unit there is.
type Money struct {
	Amount   int64  `json:"amount" jsonschema:"description=Whole minor units (cents)"`
	Currency string `json:"currency" jsonschema:"description=ISO 4217 code,pattern=^[A-Z]{3}$"`
}

// MismatchError says that two amounts of different currencies met in one calculation.
type MismatchError struct{ Left, Right string }

func (e *MismatchError) Error() string {
	return fmt.Sprintf("money: cannot combine %s with %s; convert one of them first", e.Left, e.Right)
}

// OverflowError says that a result does not fit into 64 bits of minor units.
type OverflowError struct{ Op string }

func (e *OverflowError) Error() string {
	return "money: " + e.Op + " exceeds the range of 64-bit minor units"
}

// NegativeError says that something was counted with a negative number.
type NegativeError struct{ N int64 }

func (e *NegativeError) Error() string {
	return fmt.Sprintf("money: %d pieces cannot be priced; a quantity is 0 or more", e.N)
}

// New makes an amount of minor units.
func New(amount int64, code string) Money { return Money{Amount: amount, Currency: code} }

// BRL is an amount of Brazilian centavos.
func BRL(amount int64) Money { return New(amount, "BRL") }

// Valid reports whether the currency is a known ISO 4217 code.
func (m Money) Valid() bool {
	return m.Currency != "" && currency.IsValid(m.Currency) // the library takes none for valid
}

// IsZero reports whether nothing is owed, in whatever currency.
func (m Money) IsZero() bool { return m.Amount == 0 }

// Add returns m + o. Both must have the same currency.
func (m Money) Add(o Money) (Money, error) {
	if m.Currency != o.Currency {
		return Money{}, &MismatchError{m.Currency, o.Currency}
	}
	sum := m.Amount + o.Amount
	if (sum > m.Amount) != (o.Amount > 0) {
		return Money{}, &OverflowError{"a sum"}
	}
	return Money{sum, m.Currency}, nil
}

// Sub returns m − o. Both must have the same currency.
func (m Money) Sub(o Money) (Money, error) {
	if m.Currency != o.Currency {
		return Money{}, &MismatchError{m.Currency, o.Currency}
	}
	difference := m.Amount - o.Amount
	if (difference < m.Amount) != (o.Amount > 0) {
		return Money{}, &OverflowError{"a difference"}
	}
	return Money{difference, m.Currency}, nil
}

// Times returns the price of n pieces. n must not be negative.
func (m Money) Times(n int64) (Money, error) {
	if n < 0 {
		return Money{}, &NegativeError{n}
	}
	if n > 0 && (m.Amount > math.MaxInt64/n || m.Amount < math.MinInt64/n) {
		return Money{}, &OverflowError{"a product"}
	}
	return Money{m.Amount * n, m.Currency}, nil
}

// String formats for people, with the currency's own number of decimals: "19.99 BRL".
func (m Money) String() string {
	a, err := currency.NewAmountFromInt64(m.Amount, m.Currency)
	if err != nil {
		return fmt.Sprintf("%d %s", m.Amount, m.Currency)
	}
	return a.String()
}
