package orders

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"strings"

	"github.com/google/uuid"
)

// namespace is that of order ids (RFC 9562, version 5).
var namespace = uuid.MustParse("6f1b9a3e-52f0-5d0f-9c55-0d1f6b5f6a01")

// OrderID derives an order's id from who orders and the Idempotency-Key. A repeated checkout is the same order,
// and needs no table to be recognised.
func OrderID(customer, key string) string {
	return uuid.NewSHA1(namespace, []byte(customer+"\x00"+key)).String()
}

// crockford is Crockford's base 32: no I, L, O or U.
const crockford = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"

// Number is an order's number for people: 60 bits of its id as three groups of four characters.
func Number(order string) string {
	id, err := uuid.Parse(order)
	if err != nil {
		return ""
	}
	// Bytes 6 and 8 hold version and variant; the others are as good as random.
	bits := binary.BigEndian.Uint64(append(append([]byte{}, id[0:6]...), id[10:12]...)) >> 4
	var b strings.Builder
	for i := 11; i >= 0; i-- {
		b.WriteByte(crockford[bits>>(5*i)&31])
		if i%4 == 0 && i > 0 {
			b.WriteByte('-')
		}
	}
	return b.String()
}

// fingerprint tells whether a repeated request is the same one: SHA-256 of its canonical JSON.
func fingerprint(canonical []byte) string {
	sum := sha256.Sum256(canonical)
	return hex.EncodeToString(sum[:])
}
