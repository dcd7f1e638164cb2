//go:build race

package stream

// slowdown is what the race detector costs.
const slowdown = 10
