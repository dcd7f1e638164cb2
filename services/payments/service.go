package payments

import (
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/feira-shop/feira/shared/decider"
	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/service"
)

// DefaultTimeout bounds one request to the provider.
const DefaultTimeout = 5 * time.Second

// Config says where the provider is.
type Config struct {
	ProviderURL string        // http or https, without a path of its own
	ProviderKey string        // the secret of our account there
	Timeout     time.Duration // of one request; 0 is [DefaultTimeout]
}

// Validate names all that is wrong with the configuration.
func (c Config) Validate() error {
	var errs []error
	u, err := url.Parse(c.ProviderURL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		errs = append(errs, fmt.Errorf("payments: the provider's address is %q; it must be like https://provider.example", c.ProviderURL))
	}
	if c.ProviderKey == "" {
		errs = append(errs, errors.New("payments: the provider's key is missing; without it every request is refused"))
	}
	if c.Timeout < 0 {
		errs = append(errs, fmt.Errorf("payments: the timeout is %s; it must be positive, or 0 for %s", c.Timeout, DefaultTimeout))
	}
	return errors.Join(errs...)
}

// Service is all there is to run payments. It has no tables and no API of its own: the streams are its state.
func Service(cfg Config) service.Definition {
	timeout := cfg.Timeout
	if timeout <= 0 {
		timeout = DefaultTimeout
	}
	return service.Definition{
		Name:      "payments",
		Publishes: events.Payments,
		Private:   private(),
		Streams:   []decider.Kind{aggregate().Kind(StreamOf(""))},
		Operators: operators(),
		Jobs:      work(NewProvider(cfg.ProviderURL, cfg.ProviderKey, timeout), timeout),
	}
}
