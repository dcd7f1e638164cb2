//go:build e2e

package e2e

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/feira-shop/feira/internal/shop"
	"github.com/feira-shop/feira/internal/shoptest"
	"github.com/feira-shop/feira/shared/events"
)

// janitor removes everything at the end. It is a process of its own, so that it also does after Ctrl-C, after the
// timeout of go test, and when this process is killed.
type janitor struct {
	cmd   *exec.Cmd
	input io.Closer
}

func startJanitor(run, dir string) (*janitor, error) {
	cmd, input, err := helper("janitor", dir, helperRun+"="+run)
	if err != nil {
		return nil, err
	}
	return &janitor{cmd, input}, cmd.Start()
}

// clean tells the janitor that the end has come, and waits for it.
func (j *janitor) clean() error {
	_ = j.input.Close()
	return j.cmd.Wait()
}

// cleanWithin bounds the cleaning.
const cleanWithin = time.Minute

// clean removes what a run has left: containers, files, and what it made in a Kafka or Postgres of somebody else.
func clean(ctx context.Context, s settings, run, dir string) error {
	ctx, cancel := context.WithTimeout(ctx, cleanWithin)
	defer cancel()
	var wrong []error
	if s.needsDocker() {
		docker, err := connectDocker(ctx)
		if err == nil {
			err = removeBoxes(ctx, docker, run)
		}
		wrong = append(wrong, err)
	}
	if len(s.givenKafka) > 0 {
		wrong = append(wrong, cleanKafka(ctx, s.givenKafka))
	}
	if s.givenPostgres != "" {
		wrong = append(wrong, cleanPostgres(ctx, s.givenPostgres, run))
	}
	return errors.Join(append(wrong, removeDir(ctx, dir))...)
}

// removeDir removes the folder. Embedded machines end with the tests as the janitor begins, and write until they have.
func removeDir(ctx context.Context, dir string) error {
	return await(ctx, "the folder "+dir+" to be removed", func(context.Context) error { return os.RemoveAll(dir) })
}

// cleanKafka deletes the topics and groups of the shop: when the run began there was none.
func cleanKafka(ctx context.Context, brokers []string) error {
	client, err := kgo.NewClient(kgo.SeedBrokers(brokers...))
	if err != nil {
		return err
	}
	defer client.Close()
	admin := kadm.NewClient(client)
	_, err = admin.DeleteTopics(ctx, topicNames()...)
	groups := []string{replayGroup, cardsGroup}
	for _, d := range shop.Services(shop.Config{}) {
		for _, o := range d.Operators {
			for _, t := range o.Topics {
				groups = append(groups, o.Name+"."+t.Name)
			}
		}
	}
	for { // until the last member has timed out
		deleted, gone := admin.DeleteGroups(ctx, groups...)
		if gone != nil || ctx.Err() != nil {
			return errors.Join(err, gone, ctx.Err())
		}
		groups = groups[:0]
		for _, d := range deleted.Sorted() {
			if d.Err != nil && !errors.Is(d.Err, kerr.GroupIDNotFound) {
				groups = append(groups, d.Group)
			}
		}
		if len(groups) == 0 {
			return err
		}
		time.Sleep(time.Second) // the answer does not wait for them
	}
}

// topicNames are those of the shop and the one that readiness is tried with.
func topicNames() []string {
	names := []string{readyTopic}
	for _, t := range events.Topics() {
		names = append(names, t.Name)
	}
	return names
}

// cleanPostgres drops the databases and logins of a run.
func cleanPostgres(ctx context.Context, admin, run string) error {
	conn, err := pgx.Connect(ctx, admin)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	for _, service := range append(shop.Names(), shoptest.Provider) {
		name := databaseOf(run, service)
		_, dropped := conn.Exec(ctx, "drop database if exists "+name+" with (force)")
		_, forgotten := conn.Exec(ctx, "drop role if exists "+name)
		err = errors.Join(err, dropped, forgotten)
	}
	return err
}
