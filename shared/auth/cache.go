package auth

import (
	"crypto/sha256"
	"sync"
	"time"
)

const (
	cacheFor     = time.Minute
	cacheEntries = 8192 // per generation; an entry has about 150 bytes
)

// cache remembers verified tokens by their hash. It keeps two generations and drops the older one when the
// newer is full, so its size is bounded without bookkeeping per use.
type cache struct {
	mu         sync.Mutex
	young, old map[[sha256.Size]byte]entry
}

type entry struct {
	claims Claims
	until  time.Time
}

func newCache() *cache { return &cache{young: map[[sha256.Size]byte]entry{}} }

func (c *cache) get(token string, now time.Time) (Claims, bool) {
	id := sha256.Sum256([]byte(token))
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.young[id]
	if !ok {
		e, ok = c.old[id]
	}
	return e.claims, ok && now.Before(e.until)
}

func (c *cache) put(token string, claims Claims, now time.Time) {
	until := now.Add(cacheFor)
	if claims.Expires.Before(until) {
		until = claims.Expires
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.young) >= cacheEntries {
		c.old, c.young = c.young, map[[sha256.Size]byte]entry{}
	}
	c.young[sha256.Sum256([]byte(token))] = entry{claims, until}
}
