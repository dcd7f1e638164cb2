package main

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/feira-shop/feira/internal/shop"
	"github.com/feira-shop/feira/services/fraud"
	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/eventstore"
)

type adminFraudCmd struct {
	Features featuresCmd `cmd:"" help:"Write what a model sees of every payment, for its training."`
}

type featuresCmd struct {
	admin   `embed:""`
	judging `embed:""`

	Out string `type:"path" required:"" placeholder:"FILE" help:"The file to write (CSV)."`
}

// Help explains the columns.
func (*featuresCmd) Help() string {
	return "All payments in the store are judged anew by the code that the service runs, in their order and as if none had come late. Each one of a named card becomes a line: order, card, purchased_at, the features of the model, then what the rules without a model say: score, held (1 or 0), rules by spaces. No card and no customer is named: cards are numbered as they first come. services/fraud/train trains a model with it."
}

// Run exports.
func (c *featuresCmd) Run(ctx context.Context) error {
	cfg, err := c.config()
	if err != nil {
		return err
	}
	pool, err := c.open(ctx, "payments")
	if err != nil {
		return err
	}
	defer pool.Close()
	picked, err := shop.Select(shop.Services(shop.Config{}), "payments")
	if err != nil {
		return err
	}
	f, err := os.Create(c.Out)
	if err != nil {
		return fmt.Errorf("write the features (choose another file with --out): %w", err)
	}
	store := eventstore.New(pool, eventstore.Options{Service: "payments", Registry: picked[0].Registry()})
	rows, err := writeFeatures(ctx, f, store, cfg)
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("write the features: %w", err)
	}
	fmt.Printf("%d payments written to %s\n", rows, c.Out)
	return nil
}

// writeFeatures judges by the rules alone: what a model thinks must not teach the next one.
func writeFeatures(ctx context.Context, to io.Writer, store *eventstore.Store, cfg fraud.Config) (rows int, err error) {
	out := csv.NewWriter(to)
	if err := out.Write(append(append([]string{"order", "card", "purchased_at"}, fraud.FeatureNames[:]...), "score", "held", "rules")); err != nil {
		return 0, err
	}
	judge := cfg.Judge()
	judge.Policy = &fraud.Policy{Thresholds: judge.Policy.Thresholds, ThresholdsVersion: judge.Policy.ThresholdsVersion}
	replay, cards := fraud.NewReplay(judge), map[string]int{}
	err = store.Each(ctx, 0, func(r events.Recorded) error {
		features, said, ok := replay.Features(r)
		if !ok {
			return nil
		}
		rows++
		if _, known := cards[r.Key]; !known {
			cards[r.Key] = len(cards) + 1
		}
		return out.Write(featuresOf(r, cards[r.Key], features, said[0]))
	})
	out.Flush()
	return rows, errors.Join(err, out.Error())
}

func featuresOf(r events.Recorded, card int, features fraud.Features, said events.Event) []string {
	var v events.Verdict
	held := "0"
	switch e := said.(type) {
	case events.PurchaseCleared:
		v = e.Verdict
	case events.PurchaseHeld:
		v, held = e.Verdict, "1"
	}
	at := ""
	if e, ok := r.Event.(events.PaymentAuthorized); ok {
		at = e.PurchasedAt.UTC().Format(time.RFC3339Nano)
	}
	fields := []string{v.Order, strconv.Itoa(card), at}
	for _, x := range features {
		fields = append(fields, strconv.FormatFloat(x, 'g', -1, 64))
	}
	return append(fields, strconv.Itoa(v.Score), held, strings.Join(v.Rules, " "))
}
