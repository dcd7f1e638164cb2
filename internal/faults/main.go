package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"slices"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/alecthomas/kong"
	"golang.org/x/sync/errgroup"
)

// options are the flags.
type options struct {
	Scale   float64 `default:"1" help:"Part of the full size, above 0 and at most 1."`
	Seed    int64   `help:"Seed of the tests; 0: that of the run to go on with, or a new one."`
	Run     string  `placeholder:"REGEXP" help:"Only the tests and mutants whose name matches."`
	Tests   bool    `default:"true" negatable:"" help:"Run the fault tests."`
	Mutants bool    `default:"true" negatable:"" help:"Run the mutants."`
	E2E     bool    `name:"e2e" default:"true" negatable:"" help:"Also what runs on real Kafka and Postgres; needs Docker, and make images."`
	Jobs    int     `short:"j" default:"1" help:"So many at a time; what is timed, or runs many processes, is alone."`
	Fresh   bool    `help:"Forget what has passed."`
	Report  string  `default:"docs/faults.md" help:"File of the report; written when nothing is left to run and nothing was left out."`

	only *regexp.Regexp
}

func main() {
	var o options
	kong.Parse(&o, kong.Name("faults"), kong.Description("Run the fault tests and their mutants, and write the report."), kong.UsageOnError())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := o.all(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "faults:", err)
		stop()
		os.Exit(1) //nolint:gocritic // the defer is done by hand
	}
}

// all runs what has not passed yet.
func (o *options) all(ctx context.Context) error {
	if o.Scale <= 0 || o.Scale > 1 || o.Jobs < 1 {
		return fmt.Errorf("--scale=%v --jobs=%d: expected a scale above 0 and at most 1, and at least one job", o.Scale, o.Jobs)
	}
	var err error
	if o.only, err = regexp.Compile(o.Run); err != nil {
		return fmt.Errorf("--run: %w", err)
	}
	tests, err := find(".", "TestFault")
	if err != nil {
		return err
	}
	all := slices.Clone(tests)
	for _, m := range mutants {
		all = append(all, m.test)
	}
	programs, err := compile(ctx, all)
	if err != nil {
		return err
	}
	book, err := openBook(o, programs)
	if err != nil {
		return err
	}
	fmt.Printf("seed %d, %v of the full size, %s\n", book.Seed, o.Scale, book.dir)
	steps := o.steps(tests)
	if len(steps) == 0 {
		return errNothing
	}
	failed, err := o.work(ctx, book, steps)
	if err != nil {
		return err
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d failed", failed, len(steps))
	}
	if o.Run != "" || !o.Tests || !o.Mutants || !o.E2E {
		fmt.Println("all passed; the report is written by a run that leaves nothing out")
		return nil
	}
	return writeReport(ctx, o.Report, book, steps)
}

// work runs the steps that have not passed yet, those that need the machine first and alone, the others so many at a time,
// and counts those that fail.
func (o *options) work(ctx context.Context, b *book, steps []step) (failed int, err error) {
	p := newProgress(len(steps))
	defer p.close()
	var alone, others []step
	for _, s := range steps {
		if _, done := b.result(s); done {
			p.known()
		} else if s.alone() {
			alone = append(alone, s)
		} else {
			others = append(others, s)
		}
	}
	var count atomic.Int64
	for _, part := range []struct {
		steps []step
		jobs  int
	}{{alone, 1}, {others, o.Jobs}} {
		group, ctx := errgroup.WithContext(ctx)
		group.SetLimit(part.jobs)
		for _, s := range part.steps {
			group.Go(func() error { return one(ctx, b, p, s, &count) })
		}
		if err := group.Wait(); err != nil {
			return int(count.Load()), err
		}
	}
	return int(count.Load()), nil
}

// one runs a step, unless the run was interrupted.
func one(ctx context.Context, b *book, p *progress, s step, failed *atomic.Int64) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	end := p.begin(s.name())
	r := s.run(ctx, b)
	end(r)
	if ctx.Err() != nil {
		return ctx.Err() // it was interrupted, that is no result
	}
	if !r.Good {
		failed.Add(1)
	}
	return b.keep(s, r)
}

// steps are the tests and the mutants that were asked for.
func (o *options) steps(tests []test) []step {
	var steps []step
	for _, t := range tests {
		if o.Tests && (o.E2E || !t.E2E) && o.only.MatchString(t.name()) {
			steps = append(steps, t)
		}
	}
	for _, m := range mutants {
		if o.Mutants && (o.E2E || !m.E2E) && o.only.MatchString(m.name()) {
			steps = append(steps, m)
		}
	}
	return steps
}

// step is a test or a mutant.
type step interface {
	name() string
	alone() bool
	program(p programs) string
	run(ctx context.Context, b *book) result
}

// errNothing keeps a misspelt name from passing for a success.
var errNothing = errors.New("--run names no test and no mutant")

// errNoTest is what a step ends with whose test is not there.
var errNoTest = errors.New("no such test ran")

// limit bounds a step; the longest test takes most of it on two cores.
const limit = 45 * time.Minute
