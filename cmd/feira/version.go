package main

import (
	"runtime"

	"github.com/feira-shop/feira/shared/telemetry"
)

// versionText is what --version prints: the version, the commit, Go, and the machine it is built for.
func versionText() string {
	b := telemetry.ThisBuild()
	return "feira " + b.Version + " (revision " + b.Revision + ", " + b.GoVersion + " " + runtime.GOOS + "/" + runtime.GOARCH + ")"
}
