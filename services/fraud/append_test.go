package fraud

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// What is written by hand is what encoding/json writes, and is read as it.
func TestAProfileIsWrittenAsEncodingJSONDoes(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(6, 6))
	texts := []string{"", "BRL", "pay-1", `a "quoted" \ one`, "<", "a>b", "R&D", "ação <&> \u2028", "\x00\x1f\x7f", "\xff not utf-8"}
	numbers := []float64{0, math.Copysign(0, -1), 1, 1999.5, 1.0 / 3, 1e-7, 123456789e13, 1e21, -2.5e30, math.SmallestNonzeroFloat64, math.MaxFloat64}
	names := append(slices.Clone(texts), "0190b3a4-5e6f-7a8b-9c0d-e1f203040506", "0190B3A4-5e6f-7a8b-9c0d-e1f203040506", "00000000-0000-0000-0000-000000000000")
	name := func() ID { return idOf(names[random.IntN(len(names))]) }
	code := func() Currency { return currencyOf(texts[random.IntN(len(texts))]) }
	number := func() float64 { return numbers[random.IntN(len(numbers))] }
	for range 2000 {
		var c Profile
		for range random.IntN(3) {
			c.Recent = append(c.Recent, Purchase{name(), name(), random.Int64(), -random.Int64(), code()})
		}
		for range random.IntN(3) {
			c.Minute = append(c.Minute, Bucket{random.Int64(), random.Int64(), -random.Int64(), code()})
			c.Hour = append(c.Hour, Bucket{random.Int64(), 0, random.Int64(), code()})
		}
		for range random.IntN(3) {
			c.Amounts = append(c.Amounts, Amounts{code(), random.Int64(), number(), number()})
		}
		c.First, c.Last = int64(random.IntN(2))*random.Int64(), int64(random.IntN(2))*random.Int64()
		want, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		have, err := c.AppendJSON([]byte("before"))
		if err != nil || string(have) != "before"+string(want) {
			t.Fatalf("%s, %v, want %s", have, err, want)
		}
	}
	if _, err := (Profile{Amounts: []Amounts{{Mean: math.NaN()}}}).AppendJSON(nil); err == nil {
		t.Error("a mean that is no number was written")
	}
	if _, err := (Profile{Amounts: []Amounts{{Squares: math.Inf(1)}}}).AppendJSON(nil); err == nil {
		t.Error("an endless sum was written")
	}
}

// What releases before this one have saved is read, and written again as it was.
func TestAnEarlierCheckpointIsRead(t *testing.T) {
	t.Parallel()
	const saved = `{"r":[{"p":"0190b3a4-5e6f-5a8b-9c0d-e1f203040506","o":"order-1","t":1772366400000000000,"a":1999,"c":"BRL"}],` +
		`"m":[{"i":354473280,"n":1,"s":1999,"c":"BRL"}],"h":[{"i":29539440,"n":1,"s":1999,"c":"BRL"}],` +
		`"a":[{"c":"BRL","n":1,"m":1999,"s":0}],"f":1772366400000000000,"l":1772366400000000000}`
	var c Profile
	if err := json.Unmarshal([]byte(saved), &c); err != nil {
		t.Fatal(err)
	}
	if b, err := c.AppendJSON(nil); err != nil || string(b) != saved || c.Recent[0].Payment.other != (ID{}).other {
		t.Errorf("%s, %v, want %s", b, err, saved)
	}
}
