// Package shop is the list of services. Adding one is a package under services/ and a line here.
package shop

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/feira-shop/feira/internal/seed"
	"github.com/feira-shop/feira/services/analytics"
	"github.com/feira-shop/feira/services/catalog"
	"github.com/feira-shop/feira/services/fraud"
	"github.com/feira-shop/feira/services/inventory"
	"github.com/feira-shop/feira/services/loyalty"
	"github.com/feira-shop/feira/services/orders"
	"github.com/feira-shop/feira/services/payments"
	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/service"
)

// Config is what a deployment may choose.
type Config struct {
	Deadline    time.Duration // from placed to confirmed; 0 is 5 minutes
	Hold        time.Duration // of a suspected duplicate; 0 is 15 minutes
	ProviderURL string        // address of the payment provider
	ProviderKey string        // secret the provider knows us by
	// ProviderTimeout bounds one request to the provider; 0 is the default of payments.
	ProviderTimeout time.Duration
	// Fraud is what fraud judges with; its disorder is the deadline. Zero: what is built in.
	Fraud fraud.Config
	// Analytics says how long its windows are; zero: 5 minutes.
	Analytics analytics.Config
}

// Services declares the whole shop.
func Services(cfg Config) []service.Definition {
	products := seed.Products()
	first := make([]events.ProductChanged, len(products))
	stock := make([]inventory.Delivery, len(products))
	for i, p := range products {
		first[i] = events.ProductChanged{SKU: p.SKU, Name: p.Name, Description: p.Description, Price: p.Price, Active: true}
		stock[i] = inventory.Delivery{Receipt: "first-" + p.SKU, SKU: p.SKU, Quantity: p.Stock}
	}
	return []service.Definition{
		catalog.Service(catalog.Config{First: first}),
		orders.Service(orders.Config{Deadline: cfg.Deadline, Hold: cfg.Hold, Products: len(first)}),
		inventory.Service(inventory.Config{First: stock}),
		payments.Service(payments.Config{ProviderURL: cfg.ProviderURL, ProviderKey: cfg.ProviderKey, Timeout: cfg.ProviderTimeout}),
		fraud.Service(fraud.Config{Disorder: cfg.Deadline, Forget: cfg.Fraud.Forget, Policies: cfg.Fraud.Policies}),
		loyalty.Service(),
		analytics.Service(cfg.Analytics),
	}
}

// Names lists the services by name.
func Names() []string {
	var names []string
	for _, d := range Services(Config{}) {
		names = append(names, d.Name)
	}
	return names
}

// UnknownServiceError says that a name is not one of the shop's services.
type UnknownServiceError struct{ Name string }

func (e *UnknownServiceError) Error() string {
	return fmt.Sprintf("there is no service %q; the services are %s", e.Name, strings.Join(Names(), ", "))
}

// Select returns the named services, in the order of the list; "all" names them all.
func Select(all []service.Definition, names ...string) ([]service.Definition, error) {
	if slices.Contains(names, "all") {
		return all, nil
	}
	for _, n := range names {
		if !slices.ContainsFunc(all, func(d service.Definition) bool { return d.Name == n }) {
			return nil, &UnknownServiceError{n}
		}
	}
	var picked []service.Definition
	for _, d := range all {
		if slices.Contains(names, d.Name) {
			picked = append(picked, d)
		}
	}
	return picked, nil
}

// Without returns all services but the named ones.
func Without(all []service.Definition, names ...string) ([]service.Definition, error) {
	if _, err := Select(all, names...); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(slices.Clone(all), func(d service.Definition) bool { return slices.Contains(names, d.Name) }), nil
}
