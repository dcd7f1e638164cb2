//go:build e2e

package flink

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// cost is what a run took.
type cost struct {
	cpu  time.Duration // of all its processes but the broker
	wall time.Duration
}

const deployment = "../../deployments/flink"

// flink is Apache Flink as deployments/flink runs it.
type flink struct {
	jars, kafka string
}

// newFlink fetches the jars where they are not there yet.
func newFlink(t *testing.T, kafka string) *flink {
	t.Helper()
	jars, err := filepath.Abs("../../bin/flink")
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), filepath.Join(deployment, "fetch.sh"), jars).CombinedOutput(); err != nil {
		t.Fatalf("fetch Flink: %v\n%s", err, out)
	}
	return &flink{jars: jars, kafka: kafka}
}

// command runs one SQL file. A fault is the test's, not to be tried again.
func (f *flink) command(t *testing.T, checkpoints, file string, variables ...string) (*exec.Cmd, *bytes.Buffer) {
	t.Helper()
	args := append([]string{
		"@" + deployment + "/conf/jvm.options", "-Xmx1500m", "-cp", filepath.Join(f.jars, "libs", "*"), "shop.feira.flink.RunSql",
		"--checkpoints=" + checkpoints, "-Drestart-strategy.type=none", filepath.Join(deployment, file), "kafka=" + f.kafka,
		fmt.Sprintf("disorder=%d:%02d", int(disorder.Minutes()), int(disorder.Seconds())%60),
	}, variables...)
	cmd := exec.CommandContext(t.Context(), "java", args...)
	cmd.Env = append(os.Environ(), "FLINK_CONF_DIR="+deployment+"/conf")
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	return cmd, &said
}

// run runs one SQL file over what is on the topic now, and returns when its output is committed.
func (f *flink) run(t *testing.T, file string, variables ...string) cost {
	t.Helper()
	began := time.Now()
	cmd, said := f.command(t, t.TempDir(), file, append(variables, untilNow)...)
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s: %v\n%s", file, err, said)
	}
	t.Logf("%s\n%s", file, said)
	return cost{cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(), time.Since(began)}
}

// untilNow has a job end with what is on the topic as it begins.
const untilNow = "until=latest-offset"

// spendRow and duplicateRow are the rows of windows.sql and duplicates.sql.
type spendRow struct {
	Account     string    `json:"account"`
	Currency    string    `json:"currency"`
	WindowStart time.Time `json:"window_start"`
	WindowEnd   time.Time `json:"window_end"`
	Payments    int64     `json:"payments"`
	Captured    int64     `json:"captured"`
	Refunds     int64     `json:"refunds"`
	Refunded    int64     `json:"refunded"`
}

type duplicateRow struct {
	Payment            string `json:"payment"`
	DuplicateOfPayment string `json:"duplicate_of_payment"`
}

// said is what Flink wrote to its topics.
func (f *flink) said(ctx context.Context) (answer, error) {
	a := answer{map[spendKey]spend{}, map[string]string{}}
	err := read(ctx, f.kafka, spendTopic.Name, func(r *kgo.Record) error {
		var row spendRow
		if err := json.Unmarshal(r.Value, &row); err != nil {
			return fmt.Errorf("%w: %s", err, r.Value)
		}
		if string(r.Key) != row.Account {
			return fmt.Errorf("the key is %q: %s", r.Key, r.Value)
		}
		return a.window(row)
	})
	if err != nil {
		return a, err
	}
	return a, read(ctx, f.kafka, duplicatesTopic.Name, func(r *kgo.Record) error {
		var row duplicateRow
		if err := json.Unmarshal(r.Value, &row); err != nil {
			return fmt.Errorf("%w: %s", err, r.Value)
		}
		return a.duplicate(row.Payment, row.DuplicateOfPayment)
	})
}

// window adds a row; there must not be two of one window.
func (a answer) window(r spendRow) error {
	key := spendKey{r.Account, r.Currency, r.WindowStart.UTC()}
	if _, twice := a.spend[key]; twice || r.WindowEnd.Sub(r.WindowStart) != window {
		return fmt.Errorf("a window is said twice, or is not %s long: %+v", window, r)
	}
	a.spend[key] = spend{r.Payments, r.Captured, r.Refunds, r.Refunded}
	return nil
}

func (a answer) duplicate(payment, of string) error {
	if _, twice := a.duplicates[payment]; twice {
		return fmt.Errorf("payment %s is said twice to be a duplicate", payment)
	}
	a.duplicates[payment] = of
	return nil
}
