package main

import (
	"fmt"
	"time"

	"github.com/feira-shop/feira/shared/auth"
)

type tokenCmd struct {
	Sub  string        `default:"ana" help:"Whose token it is: a customer's or an operator's id."`
	Role []string      `default:"customer" enum:"customer,operator" help:"What the bearer may do: customer, operator, or both by a comma."`
	TTL  time.Duration `name:"ttl" default:"24h" help:"How long it is valid."`
	Key  string        `env:"FEIRA_TOKEN_KEY" required:"" type:"path" placeholder:"FILE" help:"Private key (PEM, P-256) to sign with; made when missing."`
	JWKS string        `name:"jwks" env:"FEIRA_JWKS" placeholder:"FILE" help:"Key set that feira run verifies tokens by; written when missing."`
}

// Run signs and prints a token.
func (c *tokenCmd) Run() error {
	if c.TTL <= 0 {
		return fmt.Errorf("--ttl %s: a token that was never valid is of no use; expected a time such as 24h", c.TTL)
	}
	key, err := auth.LoadOrCreateKey(c.Key)
	if err != nil {
		return err
	}
	if err := ensureKeySet(c.JWKS, key); err != nil {
		return err
	}
	roles := make([]auth.Role, len(c.Role))
	for i, r := range c.Role {
		roles[i] = auth.Role(r)
	}
	token, err := key.Sign(c.Sub, roles, c.TTL)
	if err != nil {
		return err
	}
	fmt.Println(token)
	return nil
}
