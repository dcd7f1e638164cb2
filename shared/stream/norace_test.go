//go:build !race

package stream

const slowdown = 1
