// Command feira runs the shop: as a demo on embedded infrastructure, or any part of it against real addresses.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"
)

type cli struct {
	EnvFile string           `placeholder:"FILE" help:"File of NAME=value lines to take variables from, such as the feira.env that a demo writes; what is set already stays ($$FEIRA_ENV_FILE)."`
	Version kong.VersionFlag `help:"Print the version and end."`

	Demo    demoCmd    `cmd:"" help:"Run the whole shop on embedded Kafka and Postgres, with simulated shoppers."`
	Run     runCmd     `cmd:"" help:"Run services, the gateway or the provider simulator against given addresses."`
	Migrate migrateCmd `cmd:"" help:"Bring databases and topics up to date."`
	Verify  verifyCmd  `cmd:"" help:"Recompute every table from the event stores and print what differs."`
	Load    loadCmd    `cmd:"" help:"Put load on a shop and measure latencies."`
	Token   tokenCmd   `cmd:"" help:"Sign a token for the API."`
	Health  healthCmd  `cmd:"" help:"Ask a process of this machine whether it is ready; exit code 1 if not."`
	Setup   setupCmd   `cmd:"" help:"Prepare a deployment: secrets, logins and databases."`
	Admin   adminCmd   `cmd:"" help:"Look after operators: lag, pause, parked records, holes, states."`
}

const description = `An event-sourced shop to run, break and copy from.

"feira demo" needs nothing else. The other commands work on a shop that runs: they take its addresses from flags, from variables, or from the file that a demo writes (--env-file). Times are written as 500ms, 30s, 10m or 1h.`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends the process at once
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "feira: error:", err)
		os.Exit(1)
	}
}

// run does what the arguments say.
func run(ctx context.Context, args []string) error {
	if err := loadEnv(args); err != nil {
		return err
	}
	var c cli
	parser, err := kong.New(&c, kong.Name("feira"), kong.Description(description),
		kong.Vars{"version": versionText()},
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, WrapUpperBound: 100}), kong.BindTo(ctx, (*context.Context)(nil)))
	if err != nil {
		return err
	}
	if len(args) == 0 {
		args = []string{"--help"}
	}
	parsed, err := parser.Parse(args)
	if err != nil {
		return usage(err)
	}
	return parsed.Run()
}

// usage says where the flags are explained; the whole help would hide what was wrong.
func usage(err error) error {
	command := "feira"
	var wrong *kong.ParseError
	if errors.As(err, &wrong) && wrong.Context != nil {
		path, _, _ := strings.Cut(wrong.Context.Command(), " <") // without its arguments
		command = strings.TrimSpace(command + " " + path)
	}
	return fmt.Errorf("%w; see %s --help", err, command)
}
