package pgtest

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

// OwnCPU is the processor time that this process has used so far: all of its threads, the garbage collector's included.
func OwnCPU(tb testing.TB) time.Duration {
	tb.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		tb.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// CPU is the processor time used so far, from the operating system (Linux): by this process, and by the database
// server with all of its sessions. Benchmarks report differences of it.
func CPU(tb testing.TB, pool *pgxpool.Pool) (own, server time.Duration) {
	tb.Helper()
	var session int
	if err := pool.QueryRow(tb.Context(), "select pg_backend_pid()").Scan(&session); err != nil {
		tb.Fatal(err)
	}
	return OwnCPU(tb), treeCPU(tb, stat(tb, session).parent)
}

type procStat struct {
	parent int
	cpu    time.Duration // of the process and of its children that have ended
}

// stat reads /proc/<pid>/stat (proc(5)); its clock ticks are 10 ms on every Linux that Go runs on.
func stat(tb testing.TB, pid int) procStat {
	tb.Helper()
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return procStat{parent: -1} // it has ended
	}
	fields := strings.Fields(string(raw[strings.LastIndexByte(string(raw), ')')+1:])) // from the third field on
	number := func(field int) int {
		n, err := strconv.Atoi(fields[field-3])
		if err != nil {
			tb.Fatal(err)
		}
		return n
	}
	const tick = 10 * time.Millisecond
	return procStat{parent: number(4), cpu: time.Duration(number(14)+number(15)+number(16)+number(17)) * tick}
}

// treeCPU is the time of a process and its direct children.
func treeCPU(tb testing.TB, pid int) time.Duration {
	tb.Helper()
	total := stat(tb, pid).cpu
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		tb.Fatal(err)
	}
	for _, dir := range dirs {
		child, err := strconv.Atoi(filepath.Base(dir))
		if err != nil {
			continue
		}
		if s := stat(tb, child); s.parent == pid {
			total += s.cpu
		}
	}
	return total
}
