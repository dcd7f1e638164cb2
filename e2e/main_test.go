//go:build e2e

package e2e

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/testcontainers/testcontainers-go/log"
)

// suite is what the tests share.
var suite *stack

// startWithin bounds the start, in which images may be fetched.
const startWithin = 5 * time.Minute

func TestMain(m *testing.M) {
	log.SetDefault(log.NewNoopLogger())
	if help() {
		return
	}
	os.Exit(runAll(m))
}

func runAll(m *testing.M) int {
	// Ports are fixed and on this machine's loopback, whatever network this process is in; and the janitor does what
	// testcontainers' own reaper would, whose image cannot be fetched everywhere.
	for name, value := range map[string]string{"TESTCONTAINERS_HOST_OVERRIDE": "127.0.0.1", "TESTCONTAINERS_RYUK_DISABLED": "true"} {
		if os.Getenv(name) == "" {
			_ = os.Setenv(name, value) // the name is a good one
		}
	}
	flag.Parse()
	_ = flag.Set("test.parallel", "16") // journeys mostly wait; the flag exists in every test binary
	began := time.Now()
	ctx, cancel := context.WithTimeout(context.Background(), startWithin)
	defer cancel()
	var err error
	suite, err = newStack(ctx)
	defer func() {
		if err := suite.close(); err != nil {
			fmt.Fprintln(os.Stderr, "e2e: not everything was removed:", err)
		}
	}()
	if err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		for _, p := range suite.parts {
			fmt.Fprint(os.Stderr, p.troubles(began))
		}
		return 1
	}
	for _, line := range suite.versions {
		fmt.Println("e2e:", line)
	}
	fmt.Println("e2e: the shop is ready after", time.Since(began).Round(time.Millisecond))
	code := m.Run()
	if len(suite.notRun) > 0 {
		fmt.Println("e2e: NOT RUN, since this Kafka or Postgres is not ours to break:", strings.Join(suite.notRun, ", "))
	}
	return code
}

// open gives a test the running shop. At the end of a test that went well, the test's own clean-up done, every order
// must come to its end, feira verify must find no difference, and Kafka must have what the stores have.
func open(t *testing.T) *stack {
	t.Helper()
	s, began := suite, time.Now()
	must(t, s.shopReady(t.Context()))
	t.Cleanup(func() {
		if !t.Failed() {
			s.verify(t)
		}
		if t.Failed() {
			s.complain(t, began)
		}
	})
	return s
}

// breakable is open for a test that breaks Kafka or Postgres.
func breakable(t *testing.T, on ...func(*stack) machine) (*stack, []machine) {
	t.Helper()
	machines := make([]machine, len(on))
	for i := range on {
		if machines[i] = on[i](suite); machines[i] == nil {
			suite.notRun = append(suite.notRun, t.Name())
			t.Skip("NOT RUN: this test breaks Kafka or Postgres, and this one is not ours to break")
		}
	}
	return open(t), machines
}

func kafkaOn(s *stack) machine    { return s.kafkaOn }
func postgresOn(s *stack) machine { return s.postgresOn }

// settleWithin is how long orders may take to come to their end.
const settleWithin = time.Minute

// verify runs the command that examines the books.
func (s *stack) verify(t *testing.T) {
	t.Helper()
	began := time.Now()
	out, err := s.feira(context.Background(), "verify", "--settled", "--wait="+settleWithin.String())
	if err != nil {
		t.Error(err)
		return
	}
	first, _, _ := strings.Cut(out, "\n")
	t.Logf("%s, all at their end, no difference; that took %s", first, time.Since(began).Round(time.Millisecond))
}

// complain prints what the processes and the machines said.
func (s *stack) complain(t *testing.T, since time.Time) {
	t.Helper()
	for name, p := range s.parts {
		if said := p.troubles(since); said != "" {
			t.Logf("the last troubles of %s:\n%s", name, said)
		}
	}
	for name, m := range map[string]machine{"Kafka": s.kafkaOn, "Postgres": s.postgresOn} {
		if m == nil {
			continue
		}
		lines := strings.SplitAfter(m.Log(context.Background(), since), "\n")
		t.Logf("the end of what %s said:\n%s", name, strings.Join(lines[max(0, len(lines)-shownLines):], ""))
	}
}
