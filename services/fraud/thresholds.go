package fraud

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

//go:embed thresholds.json
var builtInThresholds []byte

//go:embed thresholds.schema.json
var thresholdsSchema []byte

// Thresholds are what the rules compare with, and what each of them weighs. thresholds.schema.json says what may be in
// their file.
type Thresholds struct {
	HoldAt  int            `json:"hold_at"` // score from which on a purchase is held, 1 to 100
	Minute  VelocityLimits `json:"velocity_minute"`
	Hour    VelocityLimits `json:"velocity_hour"`
	Unusual UnusualLimits  `json:"unusual_amount"`
	New     NewLimits      `json:"new_card_high_amount"`
	Model   ModelLimits    `json:"model"`
}

// Effect is what follows from a rule that fires.
type Effect struct {
	Weight int  `json:"weight"`         // added to the score, 0 to 100
	Hard   bool `json:"hard,omitempty"` // the purchase is held, whatever its score
}

// VelocityLimits are what a card may pay within a minute or an hour.
type VelocityLimits struct {
	Effect
	Payments int64            `json:"payments"`
	Sums     map[string]int64 `json:"sums"` // minor units by currency; a currency that is not in it has no limit
}

// UnusualLimits say how far an amount may be from a card's mean.
type UnusualLimits struct {
	Effect
	Deviations float64 `json:"deviations"`
	Known      int64   `json:"known"` // least number of earlier amounts
}

// NewLimits say what a new card may pay.
type NewLimits struct {
	Effect
	Hours   float64          `json:"hours"`   // how long after its first purchase it is new
	Amounts map[string]int64 `json:"amounts"` // as Sums
}

// ModelLimits say when the model objects.
type ModelLimits struct {
	Effect
	Probability int `json:"probability"` // in thousandths
}

// ThresholdsError says what is wrong with a file of thresholds. Nothing of it is used.
type ThresholdsError struct {
	File     string
	Problems []string // each with its place in the file
}

func (e *ThresholdsError) Error() string {
	return fmt.Sprintf("fraud: the thresholds in %s are not used: %s; services/fraud/thresholds.schema.json says what is expected",
		e.File, strings.Join(e.Problems, "; "))
}

// ParseThresholds reads thresholds and says which they are. Errors: [*ThresholdsError].
func ParseThresholds(file string, data []byte) (t Thresholds, version string, err error) {
	refuse := func(problems ...string) (Thresholds, string, error) {
		return Thresholds{}, "", &ThresholdsError{file, problems}
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		return refuse("it is no JSON: " + err.Error())
	}
	schema, err := schemaOf(thresholdsSchema)
	if err != nil {
		return refuse(err.Error())
	}
	if err := schema.Validate(value); err != nil {
		return refuse(problems(err)...)
	}
	if err := json.Unmarshal(data, &t); err != nil {
		return refuse(err.Error())
	}
	version, err = versionOf(t)
	if err != nil {
		return refuse(err.Error())
	}
	return t, version, nil
}

func schemaOf(text []byte) (*jsonschema.Schema, error) {
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	c := jsonschema.NewCompiler()
	const name = "urn:feira:fraud:thresholds"
	if err := c.AddResource(name, value); err != nil {
		return nil, err
	}
	return c.Compile(name)
}

// problems are the leaves of what a schema refuses, each with its place.
func problems(err error) []string {
	var refused *jsonschema.ValidationError
	if !errors.As(err, &refused) {
		return []string{err.Error()}
	}
	var all []string
	for left := []jsonschema.OutputUnit{*refused.DetailedOutput()}; len(left) > 0; left = left[1:] {
		u := left[0]
		left = append(left, u.Errors...)
		if len(u.Errors) == 0 && u.Error != nil {
			all = append(all, fmt.Sprintf("at %q: %s", u.InstanceLocation, u.Error))
		}
	}
	return all
}

// versionOf names a content, however its file is laid out: the beginning of the SHA-256 of its JSON.
func versionOf(content any) (string, error) {
	text, err := json.Marshal(content)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:6]), nil
}
