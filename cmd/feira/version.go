package main

import (
	"runtime"
	"runtime/debug"
)

// version and revision are set by the linker where the program is built without its repository, as in a container.
var version, revision string

// versionText is what --version prints: the version, the commit, Go, and the machine it is built for.
func versionText() string {
	v, r := version, revision
	if info, ok := debug.ReadBuildInfo(); ok {
		if v == "" {
			v = info.Main.Version
		}
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" && r == "" {
				r = s.Value
			}
		}
	}
	if r == "" {
		r = "unknown"
	}
	return "feira " + v + " (revision " + r + ", " + runtime.Version() + " " + runtime.GOOS + "/" + runtime.GOARCH + ")"
}
