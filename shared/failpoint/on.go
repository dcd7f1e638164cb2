//go:build failpoints

package failpoint

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
)

// armed is what FEIRA_FAILPOINT says.
type armed struct {
	point, who string
	nth        int64
	passed     atomic.Int64
}

var set = read(os.Getenv("FEIRA_FAILPOINT"))

// read panics on what it cannot read: a test whose fault never comes would pass for nothing.
func read(text string) *armed {
	if text == "" {
		return nil
	}
	a := &armed{}
	where, nth, ok := strings.Cut(text, ":")
	a.point, a.who, _ = strings.Cut(where, "@")
	var err error
	if a.nth, err = strconv.ParseInt(nth, 10, 64); !ok || err != nil || a.nth < 1 {
		panic(fmt.Sprintf("FEIRA_FAILPOINT=%q: expected POINT@WHO:N or POINT:N, with N from 1", text))
	}
	return a
}

// At is a point that who passes. Where the environment says so, the process dies there.
func At(point, who string) {
	if set == nil || point != set.point || set.who != "" && who != set.who || set.passed.Add(1) != set.nth {
		return
	}
	fmt.Fprintf(os.Stderr, "failpoint: %s of %s\n", point, who)
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL) // to itself, it cannot fail
	select {}                                      // it takes effect at once
}
