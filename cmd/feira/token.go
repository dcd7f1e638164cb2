package main

import (
	"fmt"
	"time"

	"github.com/feira-shop/feira/shared/auth"
)

type tokenCmd struct {
	Sub  string        `default:"ana" help:"Whose token it is: a customer's or an operator's id."`
	Role []string      `default:"customer" enum:"customer,operator" help:"What the bearer may do (customer, operator)."`
	TTL  time.Duration `name:"ttl" default:"24h" help:"How long it is valid."`
	Key  string        `env:"FEIRA_TOKEN_KEY" required:"" type:"path" placeholder:"FILE" help:"Private key (PEM, P-256); made when missing. Its public half goes to --jwks."`
	JWKS string        `name:"jwks" env:"FEIRA_JWKS" type:"path" placeholder:"FILE" help:"Write the key set for feira run there, when it is missing."`
}

// Run signs and prints a token.
func (c *tokenCmd) Run() error {
	key, err := auth.LoadOrCreateKey(c.Key)
	if err != nil {
		return err
	}
	if err := writeKeySet(c.JWKS, key); err != nil {
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
