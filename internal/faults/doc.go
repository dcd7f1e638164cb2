// Faults runs the fault tests and the mutants of their protections, and writes what was found to docs/faults.md.
//
// A fault test is any test named TestFault…; shared/faulttest gives it its size and takes its report. A mutant is a
// change of the program that takes a protection out. It is compiled into the test alone, by an overlay over the source
// file, and the fault test it belongs to must then fail: one that passes proves nothing.
//
// What has passed is remembered below bin/faults, so that a run that was interrupted goes on where it was. A result holds
// as long as its test is compiled from the same: a change repeats the tests of the packages that import what was changed.
package main
