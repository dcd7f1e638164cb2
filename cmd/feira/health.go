package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"
)

type healthCmd struct {
	Listen  string        `env:"FEIRA_LISTEN" default:"127.0.0.1:8081" help:"What the process to ask was told to listen on."`
	Timeout time.Duration `default:"4s" help:"How long it may take to answer."`
}

// Run asks a process on this machine, in this container, whether it is ready; exit code 1 says that it is not.
func (c *healthCmd) Run(ctx context.Context) error {
	address, err := c.address()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/readyz", nil)
	if err != nil {
		return err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return fmt.Errorf("nobody answers: %w", err)
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode == http.StatusOK {
		fmt.Println("ready")
		return nil
	}
	var answer struct{ Checks map[string]string }
	_ = json.NewDecoder(res.Body).Decode(&answer) // without names the status tells enough
	maps.DeleteFunc(answer.Checks, func(_, state string) bool { return state == "ok" })
	return fmt.Errorf("not ready: %s %s", res.Status, strings.Join(slices.Sorted(maps.Keys(answer.Checks)), ", "))
}

// address is where to reach from within what listens on all addresses.
func (c *healthCmd) address() (string, error) {
	host, port, err := net.SplitHostPort(c.Listen)
	if err != nil {
		return "", fmt.Errorf("--listen %q is not an address such as 127.0.0.1:8081: %w", c.Listen, err)
	}
	if ip := net.ParseIP(host); host == "" || ip.Equal(net.IPv4zero) {
		host = "127.0.0.1"
	} else if ip.Equal(net.IPv6unspecified) {
		host = "::1"
	}
	return net.JoinHostPort(host, port), nil
}
