package loyalty

import (
	"encoding/json"
	"math/big"
	"testing"

	"pgregory.net/rapid"

	"github.com/feira-shop/feira/shared/decider"
	"github.com/feira-shop/feira/shared/decider/decidertest"
	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/money"
)

const (
	ana = "ana"
	o1  = "order-1"
)

func earned(points int64) events.PointsEarned {
	return events.PointsEarned{Customer: ana, Order: o1, Points: points, Paid: money.BRL(points * 100)}
}

func reversed(points int64) events.PointsReversed {
	return events.PointsReversed{Customer: ana, Order: o1, Points: points}
}

func refund(soFar, captured int64) Reverse {
	return Reverse{Customer: ana, Order: o1, RefundedSoFar: money.BRL(soFar), Captured: money.BRL(captured)}
}

func given(history ...events.Event) decidertest.Spec[Account] {
	return decidertest.New(Rules).Given(history...)
}

func TestACaptureEarnsOnce(t *testing.T) {
	t.Parallel()
	earn := Earn{Customer: ana, Order: o1, Paid: money.BRL(100_00)}
	given().When(earn).Then(t, earned(100))
	given(earned(100)).When(earn).ThenNothing(t)
	given(earned(100), reversed(100)).When(earn).ThenNothing(t)
	given().When(Earn{Customer: ana, Order: o1, Paid: money.BRL(1_99)}).
		Then(t, events.PointsEarned{Customer: ana, Order: o1, Points: 1, Paid: money.BRL(1_99)})
	given().When(Earn{Customer: ana, Order: o1, Paid: money.BRL(99)}).ThenNothing(t)
}

// Earn 100 points, refund 40 %: 60. The rest: 0. Redelivered: still 0.
func TestARefundTakesBackItsShare(t *testing.T) {
	t.Parallel()
	given(earned(100)).When(refund(40_00, 100_00)).Then(t, reversed(40))
	given(earned(100), reversed(40)).When(refund(40_00, 100_00)).ThenNothing(t)
	given(earned(100), reversed(40)).When(refund(100_00, 100_00)).Then(t, reversed(60))
	gone := given(earned(100), reversed(40), reversed(60))
	gone.When(refund(100_00, 100_00)).ThenNothing(t)
	gone.When(refund(40_00, 100_00)).ThenNothing(t) // the first one again
	if got := Rules.Fold(events.List(earned(100), reversed(40), reversed(60))).Balance(); got != 0 {
		t.Errorf("%d points are left", got)
	}
}

func TestCancelledBeforeItsCaptureNeverEarns(t *testing.T) {
	t.Parallel()
	given().When(refund(100_00, 100_00)).ThenNothing(t)
	given(earned(100)).When(Reverse{Customer: ana, Order: "another", RefundedSoFar: money.BRL(1), Captured: money.BRL(1)}).ThenNothing(t)
	given(earned(100)).When(refund(0, 0)).ThenNothing(t)
	var unknown *decider.UnknownCommandError
	given().When("hello").ThenError(t, &unknown)
}

// What the service hears becomes these commands; a payment that was never captured says neither.
func TestRoutes(t *testing.T) {
	t.Parallel()
	types := operators()[0].Types
	want := []string{events.PaymentCaptured{}.EventType(), events.PaymentRefunded{}.EventType()}
	if len(types) != 2 || types[0] != want[0] || types[1] != want[1] {
		t.Errorf("it hears %v, want %v", types, want)
	}
}

func TestTheStateHasThisShape(t *testing.T) {
	t.Parallel()
	got, err := json.Marshal(Rules.Fold(events.List(earned(100), reversed(40))))
	if want := `{"orders":{"order-1":{"earned":100,"reversed":40}}}`; err != nil || string(got) != want {
		t.Errorf("got %s, %v, want %s", got, err, want)
	}
}

// drawCommand captures and refunds three orders, in steps, some of them again.
func drawCommand(t *rapid.T, _ Account) any {
	order := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "order")
	paid := map[string]int64{"a": 100_00, "b": 333_33, "c": 99}[order]
	if rapid.IntRange(0, 3).Draw(t, "earn") == 0 {
		return Earn{Customer: ana, Order: order, Paid: money.BRL(paid)}
	}
	return Reverse{Customer: ana, Order: order, RefundedSoFar: money.BRL(rapid.Int64Range(0, paid).Draw(t, "so far")), Captured: money.BRL(paid)}
}

func TestTheAccountObeysTheLawsOfDeciders(t *testing.T) {
	t.Parallel()
	decidertest.Laws(t, Rules, drawCommand)
}

// However many steps a refund takes, what is kept is the share that was not refunded, rounded down: never above it,
// never below zero, and nothing once all went back.
func TestRoundingDoesNotDependOnTheSteps(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		paid := rapid.Int64Range(1, 1<<50).Draw(t, "paid")
		account := Account{}
		do := func(cmd any) {
			happened, err := Decide(account, cmd)
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range happened {
				account = Evolve(account, e)
			}
		}
		do(Earn{Customer: ana, Order: o1, Paid: money.BRL(paid)})
		points, soFar := PointsFor(money.BRL(paid)), int64(0)
		for range rapid.IntRange(0, 30).Draw(t, "steps") {
			soFar += rapid.Int64Range(0, max(1, (paid-soFar)/3)).Draw(t, "refund")
			soFar = min(soFar, paid)
			do(refund(soFar, paid))
			kept := account.Balance()
			// kept ≤ points × (paid − so far) / paid < kept + 1
			if !shareIs(kept, points, paid-soFar, paid) {
				t.Fatalf("%d of %d points are kept after %d of %d went back", kept, points, soFar, paid)
			}
		}
		do(refund(paid, paid))
		if account.Balance() != 0 {
			t.Fatalf("%d points are kept though all went back", account.Balance())
		}
	})
}

// shareIs reports whether kept is points × part / whole rounded down.
func shareIs(kept, points, part, whole int64) bool {
	exact := new(big.Rat).SetFrac(new(big.Int).Mul(big.NewInt(points), big.NewInt(part)), big.NewInt(whole))
	low, high := new(big.Rat).SetInt64(kept), new(big.Rat).SetInt64(kept+1)
	return low.Cmp(exact) <= 0 && exact.Cmp(high) < 0
}
