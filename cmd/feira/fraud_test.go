package main_test

import (
	"encoding/csv"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/feira-shop/feira/services/fraud"
)

// rowsOf reads a CSV file whose last line may be half written.
func rowsOf(t *testing.T, file string) [][]string {
	t.Helper()
	text, err := os.ReadFile(file)
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	whole := text[:strings.LastIndexByte(string(text), '\n')+1]
	rows, err := csv.NewReader(strings.NewReader(string(whole))).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

// What a model is trained with: features of the payments, and labels of the orders, of one run. And old verdicts bear
// other thresholds: those are compared as far as they do not matter.
func TestFeaturesAndLabelsAreOfTheSameOrders(t *testing.T) {
	t.Parallel()
	folder := newFolder(t)
	labels, features := filepath.Join(t.TempDir(), "labels.csv"), filepath.Join(t.TempDir(), "features.csv")
	demo := startDemo(t, folder, "--shoppers=20", "--thieves=0.4", "--labels="+labels)
	fraudulent := map[string]string{}
	eventually(t, "all ways of fraud", func() bool {
		ways := map[string]bool{}
		for _, row := range rowsOf(t, labels) {
			fraudulent[row[0]], ways[row[1]] = row[1], true
		}
		return len(ways) == 5 // with the heading and the honest
	})
	eventually(t, "their features", func() bool {
		demo.feira(t, "admin", "fraud", "features", "--out="+features).ok(t)
		known := map[string]bool{}
		for _, row := range rowsOf(t, features)[1:] {
			known[fraudulent[row[0]]] = true
		}
		return known["card_testing"] && known["stolen_card"] && known["new_card"] && known["honest"]
	})
	heading := rowsOf(t, features)[0]
	if want := slices.Concat([]string{"order", "card", "purchased_at"}, fraud.FeatureNames[:], []string{"score", "held", "rules"}); !slices.Equal(heading, want) {
		t.Errorf("the columns are %v, want %v", heading, want)
	}

	lenient := filepath.Join(t.TempDir(), "thresholds.json")
	text, err := os.ReadFile("../../services/fraud/thresholds.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(lenient, []byte(strings.Replace(string(text), `"hold_at": 50`, `"hold_at": 100`, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{nil, {"--fraud-thresholds=" + lenient}} {
		said := demo.feira(t, append([]string{"admin", "rebuild", "fraud.cards", "--dry-run"}, args...)...).ok(t)
		has(t, said, "compared, none is written again: 0 missing, 0 different")
	}
	demo.feira(t, "verify", "--fraud-thresholds="+lenient+"x").fails(t, "no such file")
}
