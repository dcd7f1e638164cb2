package kafka

import (
	"net"
	"time"
)

// SetBatchBytes has calls cut into smaller batches.
func (p *Publisher) SetBatchBytes(n int) { p.batchBytes = n }

// DialTLS connects with little patience.
func DialTLS(t TLS, handshake time.Duration, address string) (net.Conn, error) {
	return dialer{tls: t, handshake: handshake}.Dial("tcp", address)
}
