//go:build !race

package fraud

const slowdown = 1
