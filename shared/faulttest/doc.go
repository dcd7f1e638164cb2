// Package faulttest is what fault tests have in common: their size, their seed, their report, and a network that can
// be broken.
//
// A fault test breaks something while events flow, lets it heal, waits for quiet, and compares what is there with
// what an oracle computes from the event stores alone. In `go test ./...` it is short. FEIRA_FAULTS makes it long: 1 is
// its full size, 0.1 a tenth of it. FEIRA_FAULTS_SEED repeats a run, as far as the machine lets it. FEIRA_FAULTS_REPORT
// names a folder, into which each test then writes what it did and what it found.
package faulttest
