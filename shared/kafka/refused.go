package kafka

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"

	"github.com/IBM/sarama"
)

// TLSError says why there is no encrypted connection to a broker.
type TLSError struct {
	Broker string // its address
	CA     string // file of authorities; "" is the system's
	Name   string // that the broker's certificate had to carry
	Err    error
}

func (e *TLSError) Error() string {
	return fmt.Sprintf("kafka: no TLS connection to broker %s: %s (%v)", e.Broker, e.reason(), e.Err)
}

func (e *TLSError) Unwrap() error { return e.Err }

func (e *TLSError) reason() string {
	var unknown x509.UnknownAuthorityError
	var name x509.HostnameError
	var invalid x509.CertificateInvalidError
	var header tls.RecordHeaderError
	var op *net.OpError
	switch {
	case errors.As(e.Err, &unknown) && e.CA == "":
		return "none of the system's authorities signed its certificate; name yours with " + flagCA
	case errors.As(e.Err, &unknown):
		return "no authority in " + e.CA + " signed its certificate; name the right one with " + flagCA
	case errors.As(e.Err, &name):
		return "its certificate is not for " + e.Name + "; use an address that it is for, or " + flagServerName
	case errors.As(e.Err, &invalid):
		return "its certificate is not valid"
	case errors.As(e.Err, &header), errors.Is(e.Err, io.EOF), errors.Is(e.Err, syscall.ECONNRESET):
		return "it does not seem to speak TLS at this port; take its TLS port, or leave out " + flagTLS
	case errors.Is(e.Err, context.DeadlineExceeded):
		return "it did not finish the handshake in time; it is frozen, or does not speak TLS at this port, see " + flagTLS
	case errors.As(e.Err, &op) && op.Op == "remote error":
		return "it refused this client's side; see " + flagCert + " and " + flagKey
	}
	return "the handshake failed"
}

// ClosedError says that a broker ended a connection before it served a request, as brokers do whose listener wants TLS
// or a sign-in and did not get it, and some whose sign-in failed. A broker that stops does so too.
type ClosedError struct {
	Broker string
	TLS    bool   // the connection was encrypted
	User   string // who was signing in; "": nobody
	Err    error
}

func (e *ClosedError) Error() string {
	guess := "signed in as " + e.User + ": is that user, its password and the mechanism right? See " + flagSASL
	if e.User == "" {
		guess = "not signed in: does this port want a sign-in? See " + flagSASL
	}
	if !e.TLS {
		guess = "not encrypted: does this port want TLS? See " + flagTLS + "; and " + guess
	}
	return fmt.Sprintf("kafka: broker %s closed the connection before it answered a request; the connection was %s (%v)", e.Broker, guess, e.Err)
}

func (e *ClosedError) Unwrap() error { return e.Err }

// CleartextPasswordError refuses to send a password unencrypted over a network.
type CleartextPasswordError struct {
	Broker string
}

func (e *CleartextPasswordError) Error() string {
	return fmt.Sprintf("PLAIN would send the password to broker %s in clear text; add %s, or sign in by scram-sha-512 with %s", e.Broker, flagTLS, flagSASL)
}

// SignInError says that brokers do not let this client in.
type SignInError struct {
	User, Mechanism string
	Err             error
}

func (e *SignInError) Error() string {
	if errors.Is(e.Err, sarama.ErrUnsupportedSASLMechanism) {
		return fmt.Sprintf("kafka: the brokers do not offer %s; choose another with %s (%v)", e.Mechanism, flagSASL, e.Err)
	}
	return fmt.Sprintf("kafka: the brokers refused user %s with %s; is the password right? See %s and %s (%v)", e.User, e.Mechanism, flagUser, flagPassword, e.Err)
}

func (e *SignInError) Unwrap() error { return e.Err }

// explain gives what a client's start failed by the name of its cause. Sarama keeps some causes to itself.
func explain(cfg Config, err error) error {
	if !cfg.SASL.enabled() {
		return err
	}
	signIn := func(err error) error {
		return &SignInError{User: cfg.SASL.User, Mechanism: strings.ToUpper(cfg.SASL.Mechanism), Err: err}
	}
	if errors.Is(err, sarama.ErrSASLAuthenticationFailed) {
		return signIn(err)
	}
	if !errors.Is(err, sarama.ErrOutOfBrokers) {
		return err
	}
	for _, address := range cfg.Brokers {
		broker := sarama.NewBroker(address)
		if broker.Open(baseConfig(cfg)) != nil {
			continue
		}
		_, cause := broker.Connected()
		_ = broker.Close()
		if errors.Is(cause, sarama.ErrUnsupportedSASLMechanism) {
			return signIn(cause)
		}
	}
	return err
}
