// Package python runs the programs of examples/python as they are, against a demo. It needs python3 with venv, and a
// package index to install kafka-python from.
package python
