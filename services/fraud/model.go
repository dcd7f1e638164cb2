package fraud

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

//go:embed model.json
var builtInModel []byte

// modelKind is the one kind of model there is.
const modelKind = "logistic_regression"

// Model is a logistic regression over [Features], as train/train.py writes it: each feature is normalised with the mean
// and the deviation that it had in training.
type Model struct {
	Kind         string    `json:"kind"`
	Features     []string  `json:"features"`
	Means        []float64 `json:"means"`
	Deviations   []float64 `json:"deviations"`
	Coefficients []float64 `json:"coefficients"`
	Intercept    float64   `json:"intercept"`
	Training     Training  `json:"training"`
	// Examples are purchases with the probabilities that the trainer's own library gave them. A model that gives others
	// is not used.
	Examples []Example `json:"examples"`
}

// Training says where a model comes from.
type Training struct {
	Date       time.Time         `json:"date"`
	Rows       int               `json:"rows"`       // purchases, those held out included
	Fraudulent int               `json:"fraudulent"` // of them
	HeldOut    int               `json:"held_out"`   // of them, by which precision and recall were measured
	Seed       int64             `json:"seed"`
	Threshold  float64           `json:"threshold"` // probability from which on the figures count a purchase as found
	Figures    map[string]Figure `json:"figures"`   // of rules, model and both
	Libraries  map[string]string `json:"libraries"` // with their versions
}

// Figure is how well purchases that were held out were told apart.
type Figure struct {
	Precision float64 `json:"precision"` // how much of what was found was fraud
	Recall    float64 `json:"recall"`    // how much of the fraud was found
}

// Example is one purchase and what the model must say of it.
type Example struct {
	Features    []float64 `json:"features"`
	Probability float64   `json:"probability"`
}

// ModelError says why a model's file is not used.
type ModelError struct {
	File string
	Why  string
}

func (e *ModelError) Error() string {
	return fmt.Sprintf("fraud: the model in %s is not used: %s; train it anew with make fraud-model", e.File, e.Why)
}

// FeaturesError says that a model looks at other features than this release computes, or in another order.
type FeaturesError struct {
	File             string
	Missing, Unknown []string
	Expected         []string // in their order
}

func (e *FeaturesError) Error() string {
	return fmt.Sprintf("fraud: the model in %s is not used: its features must be %s, in this order; missing: %s; unknown: %s; export them anew and train again",
		e.File, strings.Join(e.Expected, ", "), orNone(e.Missing), orNone(e.Unknown))
}

func orNone(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

// ParseModel reads a model and says which it is. Errors: [*ModelError], [*FeaturesError].
func ParseModel(file string, data []byte) (*Model, string, error) {
	refuse := func(format string, args ...any) (*Model, string, error) {
		return nil, "", &ModelError{file, fmt.Sprintf(format, args...)}
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	var m Model
	if err := decoder.Decode(&m); err != nil {
		return refuse("it cannot be read, perhaps because of a NaN or Infinity, which are no JSON: %v", err)
	}
	if m.Kind != modelKind {
		return refuse("it is of the kind %q, expected %s", m.Kind, modelKind)
	}
	if err := m.knows(file); err != nil {
		return nil, "", err
	}
	if why := m.sound(); why != "" {
		return refuse("%s", why)
	}
	version, err := versionOf(m)
	if err != nil {
		return refuse("%v", err)
	}
	return &m, version, nil
}

// knows holds the model's features against ours.
func (m *Model) knows(file string) error {
	if slices.Equal(m.Features, FeatureNames[:]) {
		return nil
	}
	e := &FeaturesError{File: file, Expected: FeatureNames[:]}
	for _, name := range FeatureNames {
		if !slices.Contains(m.Features, name) {
			e.Missing = append(e.Missing, name)
		}
	}
	for _, name := range m.Features {
		if !slices.Contains(FeatureNames[:], name) {
			e.Unknown = append(e.Unknown, name)
		}
	}
	return e
}

// sound says what is wrong with the numbers; "" when nothing is.
func (m *Model) sound() string {
	for _, list := range []struct {
		name   string
		values []float64
	}{{"means", m.Means}, {"deviations", m.Deviations}, {"coefficients", m.Coefficients}} {
		if len(list.values) != len(FeatureNames) {
			return fmt.Sprintf("it has %d %s for %d features", len(list.values), list.name, len(FeatureNames))
		}
	}
	for i, d := range m.Deviations {
		if d <= 0 {
			return fmt.Sprintf("the deviation of %s is %g, expected more than 0", m.Features[i], d)
		}
	}
	if len(m.Examples) == 0 {
		return "it has no examples to be checked by"
	}
	for i, e := range m.Examples {
		if len(e.Features) != len(FeatureNames) {
			return fmt.Sprintf("example %d has %d features, expected %d", i, len(e.Features), len(FeatureNames))
		}
		got := m.probability((*Features)(e.Features))
		if !(math.Abs(got-e.Probability) <= agreement) { // NaN included
			return fmt.Sprintf("it gives example %d the probability %g, and its trainer gave %g", i, got, e.Probability)
		}
	}
	return ""
}

// agreement is how far two libraries' exponentials may be apart.
const agreement = 1e-9

func (m *Model) probability(f *Features) float64 {
	z := m.Intercept
	for i, x := range f {
		z += float64(m.Coefficients[i] * ((x - m.Means[i]) / m.Deviations[i]))
	}
	return 1 / (1 + math.Exp(-z))
}

// Score is the probability of fraud in thousandths.
func (m *Model) Score(f Features) int { return int(math.Round(1000 * m.probability(&f))) }
