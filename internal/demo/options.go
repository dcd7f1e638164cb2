package demo

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"slices"
	"time"

	"github.com/feira-shop/feira/internal/shop"
	"github.com/feira-shop/feira/services/analytics"
	"github.com/feira-shop/feira/services/fraud"
	"github.com/feira-shop/feira/shared/kafka"
	"github.com/feira-shop/feira/shared/pg"
)

// Options are what a user may choose.
type Options struct {
	Listen      string           // address of the shop; port 0 takes any free one
	KafkaListen string           // address of the broker, on 127.0.0.1
	Data        string           // folder kept between runs; "": a temporary one
	Shoppers    float64          // new orders per second, up to 1000; 0: nobody
	For         time.Duration    // then stop, settle, summarise and verify; 0: until interrupted
	Deadline    time.Duration    // from placed to confirmed, at least a second
	Without     []string         // services that are left to other processes
	Seed        int64            // of the shoppers' choices
	Analytics   analytics.Config // how long windows are
	Fraud       fraud.Config     // what fraud judges with
	FraudFiles  fraud.Files      // where that comes from, for other processes
	Thieves     float64          // share of the orders that are fraud, 0 to 0.5
	Labels      string           // file that says which; "": none
	Out         io.Writer        // what a person reads
	Width       func() int       // columns of the terminal that Out is; nil or 0: Out is none, and has no live line
}

const (
	maxShoppers = 1000
	maxThieves  = 0.5
)

// ErrInterrupted says that a demo with a time was ended before it, so nothing was verified.
var ErrInterrupted = errors.New("interrupted before the time was over; nothing was verified")

// validate collects everything that is wrong before anything is started.
func (o Options) validate() error {
	var wrong []error
	if _, _, err := net.SplitHostPort(o.Listen); err != nil {
		wrong = append(wrong, fmt.Errorf("--listen %q is no address; expected host:port, such as 127.0.0.1:8080", o.Listen))
	}
	if _, _, err := net.SplitHostPort(o.KafkaListen); err != nil {
		wrong = append(wrong, fmt.Errorf("--kafka-listen %q is no address; expected 127.0.0.1:port, such as 127.0.0.1:9092", o.KafkaListen))
	}
	if !(o.Shoppers >= 0 && o.Shoppers <= maxShoppers) {
		wrong = append(wrong, fmt.Errorf("--shoppers %g: expected 0 to %d new orders per second", o.Shoppers, maxShoppers))
	}
	if !(o.Thieves >= 0 && o.Thieves <= maxThieves) {
		wrong = append(wrong, fmt.Errorf("--thieves %g: expected a share of 0 to %g", o.Thieves, maxThieves))
	}
	if o.For < 0 {
		wrong = append(wrong, fmt.Errorf("--for %s: expected a time such as 60s, or none", o.For))
	}
	if o.Deadline < time.Second {
		wrong = append(wrong, fmt.Errorf("--deadline %s: expected at least 1s", o.Deadline))
	}
	if _, err := shop.Without(shop.Services(shop.Config{}), o.Without...); err != nil {
		wrong = append(wrong, fmt.Errorf("--without: %w", err))
	}
	if err := o.Analytics.Validate(); err != nil {
		wrong = append(wrong, fmt.Errorf("--window: %w", err))
	}
	if o.leaves("orders") && o.Shoppers > 0 {
		wrong = append(wrong, errors.New("--without orders: this process has no shop to order from; add --shoppers 0, and order at the address of feira run gateway"))
	}
	return errors.Join(wrong...)
}

func (o Options) leaves(service string) bool { return slices.Contains(o.Without, service) }

// explain says what to do about a failure that the options cause.
func (o Options) explain(err error) error {
	var taken *kafka.AddressInUseError
	var kafkaDir *kafka.DataDirInUseError
	var pgDir *pg.InUseError
	var refused *pg.DirError
	var folder *folderError
	var length *analytics.LengthError
	switch {
	case errors.As(err, &length):
		return fmt.Errorf("the folder %s was counted in other windows (choose theirs with --window, or another folder with --data): %w", o.Data, length)
	case errors.As(err, &folder):
		return err
	case errors.As(err, &taken):
		return takenError("Kafka", taken.Address, "--kafka-listen")
	case errors.As(err, &kafkaDir):
		return fmt.Errorf("another demo works on the folder %s: stop it, or choose another folder with --data", o.Data)
	case errors.As(err, &pgDir):
		return fmt.Errorf("another demo (process %d) works on the folder %s: stop it, or choose another folder with --data", pgDir.PID, o.Data)
	case errors.As(err, &refused):
		return fmt.Errorf("the folder %s does not serve (choose another with --data): %w", o.Data, err)
	case errors.Is(err, fs.ErrPermission):
		return &folderError{o.Data, err}
	}
	return err
}

// folderError says that the demo's folder is of no use.
type folderError struct {
	dir string
	err error
}

func (e *folderError) Error() string {
	return fmt.Sprintf("the folder %s cannot be used: %v; choose one that you may write to with --data", e.dir, e.err)
}

func (e *folderError) Unwrap() error { return e.err }

func takenError(what, address, flag string) error {
	return fmt.Errorf("the address of %s, %s, is taken by another program: stop it, or choose another address with %s (127.0.0.1:0 takes any free port)",
		what, address, flag)
}
