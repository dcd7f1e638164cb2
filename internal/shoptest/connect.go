package shoptest

import (
	"context"
	"fmt"
	"time"

	"github.com/feira-shop/feira/internal/shop"
	"github.com/feira-shop/feira/services/analytics"
	"github.com/feira-shop/feira/shared/auth"
	"github.com/feira-shop/feira/shared/kafka"
	"github.com/feira-shop/feira/shared/pg"
)

// Remote says where a shop is that runs elsewhere.
type Remote struct {
	URL   string // of the public API
	Kafka kafka.Config
	DSN   func(service string) (string, error) // address of a service's database; that of [Provider] too
	Key   *auth.Key                            // that the shop's key set is of
}

// Windows are those of a shop under test: so short that some close while it is looked at. A shop that runs elsewhere must
// have them too.
var Windows = analytics.Config{Window: 5 * time.Second}

// Connect gives a shop that runs elsewhere the same customers and looks into its books. It is the caller's to start, to
// examine and to stop; [Shop.Close] ends the connection.
func Connect(ctx context.Context, r Remote) (*Shop, error) {
	s := &Shop{
		URL: r.URL, Kafka: r.Kafka, Services: shop.Services(shop.Config{Analytics: Windows}),
		key: r.Key, databases: map[string]database{}, client: newClient(), pause: time.Second, // there may be a lot to read
	}
	for _, name := range append(shop.Names(), Provider) {
		dsn, err := r.DSN(name)
		if err == nil {
			db := database{dsn: dsn}
			db.pool, err = pg.Open(ctx, dsn, pg.PoolOptions{Name: "shoptest", MaxConns: 2})
			s.databases[name] = db
		}
		if err != nil {
			s.Close()
			return nil, fmt.Errorf("connect to the database of %s: %w", name, err)
		}
	}
	return s, nil
}

// Close ends the connections of [Connect].
func (s *Shop) Close() {
	for _, db := range s.databases {
		if db.pool != nil {
			db.pool.Close()
		}
	}
	s.client.CloseIdleConnections()
}
