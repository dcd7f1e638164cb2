package catalog

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"testing"

	"github.com/feira-shop/feira/services/catalog/api"
	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/eventstore"
	"github.com/feira-shop/feira/shared/money"
	"github.com/feira-shop/feira/shared/pg"
	"github.com/feira-shop/feira/shared/pg/pgtest"
	"github.com/feira-shop/feira/shared/service"
	"github.com/feira-shop/feira/shared/web"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

func open(t *testing.T) *eventstore.Store {
	t.Helper()
	own, err := fs.Sub(migrations, "migrations")
	if err != nil {
		t.Fatal(err)
	}
	db := pgtest.New(t, eventstore.Migrations(), pg.Set{Name: "catalog", FS: own})
	return eventstore.New(db.Pool, eventstore.Options{Service: "catalog", Registry: events.NewRegistry()})
}

var coffee = events.ProductChanged{SKU: "CAFE-500", Name: "Café ☕", Description: "Torrado\ne moído", Price: money.BRL(2990), Active: true}

func mustPut(t *testing.T, store *eventstore.Store, p events.ProductChanged) Product {
	t.Helper()
	written, err := put(t.Context(), store, p, anyVersion, "op")
	if err != nil {
		t.Fatal(err)
	}
	return written
}

// checkOutbox compares the row with the latest event, which others will hear.
func checkOutbox(t *testing.T, store *eventstore.Store, sku string, version int64) {
	t.Helper()
	history, err := store.History(t.Context(), Stream(sku), eventstore.Until{})
	if err != nil || int64(len(history)) != version {
		t.Fatalf("%d events of %s, %v, want %d", len(history), sku, err, version)
	}
	if version == 0 {
		return
	}
	p, err := get(t.Context(), store, sku)
	last := history[len(history)-1]
	if err != nil || last.Event != p.ProductChanged || !last.Time.Equal(p.UpdatedAt) || p.Version != version {
		t.Errorf("the row is %+v, %v, the event says %+v at %s", p, err, last.Event, last.Time)
	}
	kept, err := store.Load(t.Context(), Stream(sku))
	if err != nil || string(kept.State) != string(last.Data) {
		t.Errorf("the state is %s, %v, the event %s", kept.State, err, last.Data)
	}
}

func TestRowAndEventAreOne(t *testing.T) {
	t.Parallel()
	store := open(t)
	first := mustPut(t, store, coffee)
	if first.Version != 1 || first.ProductChanged != coffee || first.UpdatedAt.IsZero() {
		t.Errorf("written %+v", first)
	}
	checkOutbox(t, store, coffee.SKU, 1)
	dearer := coffee
	dearer.Price = money.BRL(3190)
	second := mustPut(t, store, dearer)
	checkOutbox(t, store, coffee.SKU, 2)
	if again := mustPut(t, store, dearer); again.Version != second.Version || !again.UpdatedAt.Equal(second.UpdatedAt) || again.ProductChanged != dearer {
		t.Errorf("a change that changes nothing gave %+v, before it was %+v", again, second)
	}
	checkOutbox(t, store, coffee.SKU, 2)
}

// When the row cannot be written there is no event, and when the event cannot be there is no row.
func TestNeitherWithoutTheOther(t *testing.T) {
	t.Parallel()
	store := open(t)
	for _, table := range []string{"products", "events"} {
		if _, err := store.Pool().Exec(t.Context(), "alter table "+table+" add constraint never check (false) not valid"); err != nil {
			t.Fatal(err)
		}
		if _, err := put(t.Context(), store, coffee, anyVersion, "op"); err == nil {
			t.Error("the product was written")
		}
		checkOutbox(t, store, coffee.SKU, 0)
		var missing *NotFoundError
		if _, err := get(t.Context(), store, coffee.SKU); !errors.As(err, &missing) {
			t.Errorf("there is a row: %v", err)
		}
		if _, err := store.Pool().Exec(t.Context(), "alter table "+table+" drop constraint never"); err != nil {
			t.Fatal(err)
		}
	}
	mustPut(t, store, coffee)
}

func TestOnlyPricesThatExist(t *testing.T) {
	t.Parallel()
	store := open(t)
	for _, price := range []money.Money{money.New(1, "ZZZ"), money.New(1, ""), money.New(1, "brl"), money.BRL(-1)} {
		p := coffee
		p.Price = price
		var wrong *PriceError
		if _, err := put(t.Context(), store, p, anyVersion, "op"); !errors.As(err, &wrong) {
			t.Errorf("%+v: %v", price, err)
		}
	}
	checkOutbox(t, store, coffee.SKU, 0)
}

// Of writers who have all read one version, one writes.
func TestTheDemandedVersionIsCheckedWhereItIsWritten(t *testing.T) {
	t.Parallel()
	store := open(t)
	mustPut(t, store, coffee)
	var mu sync.Mutex
	wrote := 0
	var wg sync.WaitGroup
	for i := range 10 {
		wg.Go(func() {
			p := coffee
			p.Price = money.BRL(int64(5000 + i))
			got, err := put(t.Context(), store, p, 1, "op")
			var stale *VersionError
			switch {
			case err == nil && got.ProductChanged == p && got.Version == 2:
				mu.Lock()
				wrote++
				mu.Unlock()
			case !errors.As(err, &stale) || stale.Have != 2:
				t.Errorf("%+v, %v", got, err)
			}
		})
	}
	wg.Wait()
	if wrote != 1 {
		t.Errorf("%d writers wrote", wrote)
	}
	checkOutbox(t, store, coffee.SKU, 2)
}

func TestConditionsOfRequests(t *testing.T) {
	t.Parallel()
	h := &handlers{open(t)}
	request := func(price int64, match, none string) (string, error) {
		r := api.PutProductRequestObject{Sku: coffee.SKU, Body: &api.ProductInput{Name: "Coffee", Price: money.BRL(price), Active: true}}
		if match != "" {
			r.Params.IfMatch = &match
		}
		if none != "" {
			r.Params.IfNoneMatch = &none
		}
		answer, err := h.PutProduct(t.Context(), r)
		var failed *web.Error
		switch a := answer.(type) {
		case api.PutProduct201JSONResponse:
			return "created " + a.Headers.ETag, nil
		case api.PutProduct200JSONResponse:
			return "changed " + a.Headers.ETag, nil
		}
		if errors.As(err, &failed) && failed.Kind == web.PreconditionFailed {
			return "refused", nil
		}
		return "", err
	}
	for _, c := range []struct {
		price       int64
		match, none string
		want        string
	}{
		{1, `"1"`, "", "refused"}, {1, "*", "", "refused"}, {1, "", "*", `created "1"`}, {2, "", "*", "refused"},
		{2, `"1"`, "", `changed "2"`}, {3, `"1"`, "", "refused"}, {3, "*", "", `changed "3"`}, {3, "", "", `changed "3"`},
		{4, "", `"3"`, "refused"}, {4, "", `"2"`, `changed "4"`},
	} {
		if got, err := request(c.price, c.match, c.none); err != nil || got != c.want {
			t.Errorf("price %d, If-Match %s, If-None-Match %s: %s, %v, want %s", c.price, c.match, c.none, got, err, c.want)
		}
	}
	known := `"4"`
	if answer, err := h.GetProduct(t.Context(), api.GetProductRequestObject{Sku: coffee.SKU, Params: api.GetProductParams{IfNoneMatch: &known}}); err != nil {
		t.Error(err)
	} else if _, unchanged := answer.(api.GetProduct304Response); !unchanged {
		t.Errorf("got %T", answer)
	}
}

func TestTheListIsPagedBySKU(t *testing.T) {
	t.Parallel()
	store := open(t)
	h := &handlers{store}
	for _, i := range []int{4, 1, 3, 0, 2} {
		p := coffee
		p.SKU = fmt.Sprintf("SKU-%d", i)
		mustPut(t, store, p)
	}
	var got []string
	limit := 2
	var after *string
	for {
		answer, err := h.ListProducts(t.Context(), api.ListProductsRequestObject{Params: api.ListProductsParams{Limit: &limit, After: after}})
		if err != nil {
			t.Fatal(err)
		}
		page := answer.(api.ListProducts200JSONResponse)
		for _, p := range page.Data {
			got = append(got, p.Sku)
		}
		if !page.HasMore {
			break
		}
		after = &page.NextCursor
	}
	if fmt.Sprint(got) != "[SKU-0 SKU-1 SKU-2 SKU-3 SKU-4]" {
		t.Errorf("listed %v", got)
	}
}

// The shop starts with its first products, again and again and in several replicas, and never undoes a change.
func TestTheSeedChangesNothingThatIsThere(t *testing.T) {
	t.Parallel()
	store := open(t)
	dearer := coffee
	dearer.Price = money.BRL(9999)
	mustPut(t, store, dearer)
	other := coffee
	other.SKU = "MEL-250"
	seed := Service(Config{First: []events.ProductChanged{coffee, other}}).Seed
	var wg sync.WaitGroup
	for range 5 {
		wg.Go(func() {
			if err := seed(t.Context(), service.Runtime{Store: store}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	checkOutbox(t, store, coffee.SKU, 1)
	checkOutbox(t, store, other.SKU, 1)
	if p, err := get(t.Context(), store, coffee.SKU); err != nil || p.Price != dearer.Price {
		t.Errorf("%+v, %v", p, err)
	}
}

// The compacted topic's latest record is the product: what the state keeps is the event, byte for byte.
func TestTheStateIsTheEvent(t *testing.T) {
	t.Parallel()
	data, err := json.Marshal(latest(events.ProductChanged{}, coffee))
	want := `{"sku":"CAFE-500","name":"Café ☕","description":"Torrado\ne moído","price":{"amount":2990,"currency":"BRL"},"active":true}`
	if err != nil || string(data) != want {
		t.Errorf("got %s, %v, want %s", data, err, want)
	}
}
