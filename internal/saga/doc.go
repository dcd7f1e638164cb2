// Package saga plays the story of orders in memory: the pure deciders of all services, wired by their own routes, with
// no database, broker or clock. Its tests deliver every partition at its own pace, lose the provider's answers, let
// people interfere at any moment, and then ask for what must hold of every order when all is quiet.
package saga
