package kafka

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/IBM/sarama"
)

// How long a broker may take to accept a connection, and then to finish the TLS handshake. Sarama would wait for a
// handshake as long as for an answer, with its lock on the broker held, so that a frozen broker would hold up whoever
// asks for another one.
const (
	dialTimeout      = 3 * time.Second
	handshakeTimeout = 5 * time.Second
	keepAlive        = 5 * time.Second
)

// dialer opens the connections of all clients. What goes wrong with TLS or a sign-in is named with the broker's
// address: sarama would say "EOF".
type dialer struct {
	tls       TLS
	sasl      SASL
	handshake time.Duration // how long one may take
}

// Dial implements sarama's dialer, which has no context.
func (d dialer) Dial(network, address string) (net.Conn, error) {
	open := net.Dialer{Timeout: dialTimeout, KeepAlive: keepAlive}
	raw, err := open.DialContext(context.Background(), network, address)
	if err != nil {
		return nil, err
	}
	c, err := d.secure(raw, address)
	if err != nil {
		_ = raw.Close() // a failed handshake has closed it
		return nil, err
	}
	return &conn{Conn: c, dialer: d, address: address}, nil
}

// secure encrypts a connection, where that is asked for; where it is not, it refuses to send a password in the clear.
// The address decides that and not the name it was asked by, because brokers tell each other's names.
func (d dialer) secure(c net.Conn, address string) (net.Conn, error) {
	if !d.tls.Enabled {
		if d.sasl.plain() && !local(c) {
			return nil, &CleartextPasswordError{Broker: address}
		}
		return c, nil
	}
	config, problems := d.tls.config()
	if err := wrong(problems); err != nil {
		return nil, err
	}
	if config.ServerName == "" {
		host, _, err := net.SplitHostPort(address)
		if err != nil {
			return nil, err
		}
		config.ServerName = host
	}
	limit, cancel := context.WithTimeout(context.Background(), d.handshake)
	defer cancel()
	secure := tls.Client(c, config)
	if err := secure.HandshakeContext(limit); err != nil {
		return nil, &TLSError{Broker: address, CA: d.tls.CA, Name: config.ServerName, Err: err}
	}
	return secure, nil
}

// local says whether the other end is on this machine, whatever name it was called by.
func local(c net.Conn) bool {
	a, ok := c.RemoteAddr().(*net.TCPAddr)
	return ok && a.IP.IsLoopback()
}

// conn gives the errors of a connection's beginning their names.
type conn struct {
	net.Conn
	dialer  dialer
	address string
	writes  atomic.Int32 // requests; reader and writer are different goroutines
}

// Write sends one request.
func (c *conn) Write(b []byte) (int, error) {
	c.writes.Add(1)
	return c.Conn.Write(b)
}

// Read reads part of an answer.
func (c *conn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if err == nil {
		return n, nil
	}
	var op *net.OpError
	switch {
	case c.dialer.tls.Enabled && errors.As(err, &op) && op.Op == "remote error":
		// In TLS 1.3 a broker's opinion of the client's certificate comes after the handshake.
		err = &TLSError{Broker: c.address, CA: c.dialer.tls.CA, Name: c.dialer.tls.ServerName, Err: err}
	case c.writes.Load() <= c.dialer.sasl.opening() && (errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET)):
		err = &ClosedError{Broker: c.address, TLS: c.dialer.tls.Enabled, User: c.dialer.sasl.User, Err: err}
	}
	return n, err
}

// opening is how many requests a connection begins with: which versions are spoken, the sign-in, and one that is
// answered only to who may ask.
func (s SASL) opening() int32 {
	switch {
	case !s.enabled():
		return 2
	case s.mechanism() == sarama.SASLTypePlaintext:
		return 3
	default:
		return 4
	}
}
