// Package failpoint lets tests take a process away at a named point of the runtime.
//
// A build with the tag failpoints obeys FEIRA_FAILPOINT, "POINT@WHO:N": when WHO passes POINT for the Nth time, the
// process kills itself with SIGKILL, as a power cut would. "POINT:N" is for whoever passes it. An ordinary build has no
// such points: [At] is empty.
package failpoint
