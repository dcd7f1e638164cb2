//go:build race

package fraud

// slowdown is what the race detector costs.
const slowdown = 10
