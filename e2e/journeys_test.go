//go:build e2e

package e2e

import (
	"os"
	"strings"
	"testing"

	"github.com/feira-shop/feira/internal/shoptest/journeys"
)

// TestJourneys: what customers do, from a checkout that is settled to each way an order can go wrong, all at once. What
// is on Kafka afterwards is as the contract says.
func TestJourneys(t *testing.T) {
	s := open(t)
	t.Run("Checkout", func(t *testing.T) { journeys.Checkout(t, s.shop) })
	t.Run("Together", func(t *testing.T) {
		for name, journey := range journeys.Together {
			t.Run(name, func(t *testing.T) { journey(t, s.shop) })
		}
	})
	t.Run("Contract", func(t *testing.T) { journeys.Contract(t, s.shop, true) })
	t.Run("NoCardNumbers", func(t *testing.T) { journeys.NoCardNumbers(t, s.shop, s.said(t)) })
}

// said is all that the shop's processes wrote to their logs.
func (s *stack) said(t *testing.T) string {
	t.Helper()
	var all strings.Builder
	for _, p := range s.parts {
		text, err := os.ReadFile(p.logFile)
		must(t, err)
		all.Write(text)
	}
	return all.String()
}
