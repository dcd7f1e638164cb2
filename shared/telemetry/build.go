package telemetry

import (
	"runtime"
	"runtime/debug"

	"github.com/prometheus/client_golang/prometheus"
)

// Set when the program is built where there is no git repository, as in an image:
//
//	go build -ldflags "-X github.com/feira-shop/feira/shared/telemetry.version=v1.2.3 \
//	  -X github.com/feira-shop/feira/shared/telemetry.revision=3e377c1"
var version, revision string

// unknown stands for what neither the flags nor the Go tool wrote into the program.
const unknown = "unknown"

// Build is what this program was built from.
type Build struct{ Version, Revision, GoVersion string }

// ThisBuild says what this program was built from: as the linker was told, else as the Go tool recorded it.
func ThisBuild() Build {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{}
	}
	return buildOf(version, revision, info)
}

func buildOf(version, revision string, info *debug.BuildInfo) Build {
	recorded := map[string]string{}
	for _, s := range info.Settings {
		recorded[s.Key] = s.Value
	}
	if version == "" {
		version = info.Main.Version
	}
	if revision == "" {
		revision = recorded["vcs.revision"]
		if revision != "" && recorded["vcs.modified"] == "true" {
			revision += "-modified"
		}
	}
	b := Build{Version: version, Revision: revision, GoVersion: runtime.Version()}
	for _, field := range []*string{&b.Version, &b.Revision} {
		if *field == "" {
			*field = unknown
		}
	}
	return b
}

// buildInfo is the build as labels of a figure that is always 1.
func buildInfo() prometheus.Collector {
	b := ThisBuild()
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "feira_build_info", Help: "What the program was built from; always 1.",
		ConstLabels: prometheus.Labels{"version": b.Version, "revision": b.Revision, "goversion": b.GoVersion},
	}, func() float64 { return 1 })
}
