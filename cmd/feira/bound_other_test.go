//go:build !linux

package main_test

import "os/exec"

// startBound starts a process. Only Linux can bind it to the life of this one.
func startBound(cmd *exec.Cmd) (release func(), err error) { return func() {}, cmd.Start() }

func runBound(cmd *exec.Cmd) error { return cmd.Run() }
