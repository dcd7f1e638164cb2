package telemetry

import (
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
)

func TestABuildIsNamedByTheLinkerOrByGit(t *testing.T) {
	t.Parallel()
	git := &debug.BuildInfo{
		Main:     debug.Module{Version: "v0.0.0-20260101000000-3e377c1a0b0c"},
		Settings: []debug.BuildSetting{{Key: "vcs.revision", Value: "3e377c1"}, {Key: "vcs.modified", Value: "true"}},
	}
	for _, c := range []struct {
		version, revision string
		info              *debug.BuildInfo
		want              Build
	}{
		{"v1.2.3", "abc", git, Build{Version: "v1.2.3", Revision: "abc"}},
		{"", "", git, Build{Version: "v0.0.0-20260101000000-3e377c1a0b0c", Revision: "3e377c1-modified"}},
		{"", "", &debug.BuildInfo{}, Build{Version: "unknown", Revision: "unknown"}},
	} {
		c.want.GoVersion = runtime.Version()
		if got := buildOf(c.version, c.revision, c.info); got != c.want {
			t.Errorf("%+v, not %+v", got, c.want)
		}
	}
	if page := scrape(t, NewMetrics()); !strings.Contains(page, `feira_build_info{goversion="`+runtime.Version()+`",revision="`) {
		t.Error("/metrics lacks the build")
	}
}
