package pg

import "fmt"

// InUseError says that another process runs a server on the directory.
type InUseError struct {
	Dir string
	PID int // of the process that holds it; 0: unknown
}

func (e *InUseError) Error() string {
	by := "another process"
	if e.PID != 0 {
		by = fmt.Sprintf("process %d", e.PID)
	}
	return fmt.Sprintf("postgres directory %s is in use by %s: stop that one, or choose another directory", e.Dir, by)
}

// PortBusyError says that the port cannot be bound.
type PortBusyError struct {
	Port int
	Err  error
}

func (e *PortBusyError) Error() string {
	return fmt.Sprintf("postgres cannot listen on 127.0.0.1:%d: free that port or choose another: %v", e.Port, e.Err)
}

func (e *PortBusyError) Unwrap() error { return e.Err }

// NoBinariesError says that Postgres is not on this machine and could not be fetched.
type NoBinariesError struct {
	Reason string // why what was found or fetched does not serve
	Err    error  // nil when nothing was tried
}

func (e *NoBinariesError) Error() string {
	text := "no usable Postgres: " + e.Reason
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text + fmt.Sprintf(". Install Postgres %d or newer (Debian, Ubuntu: apt-get install postgresql;"+
		" macOS: brew install postgresql@18), or let this machine reach %s (%s changes the address)",
		minimumMajor, defaultMavenURL, MavenURLVariable)
}

func (e *NoBinariesError) Unwrap() error { return e.Err }

// DirError says that the directory cannot be used.
type DirError struct {
	Dir    string
	Reason string
	Do     string // what to do
}

func (e *DirError) Error() string {
	return fmt.Sprintf("postgres directory %q cannot be used: %s; %s", e.Dir, e.Reason, e.Do)
}

// StartError says that Postgres ended or did not become ready while it was starting.
type StartError struct {
	Step string // initdb or postgres
	Log  string // the end of what it said
	Err  error
}

func (e *StartError) Error() string { return fmt.Sprintf("%s failed: %v\n%s", e.Step, e.Err, e.Log) }

func (e *StartError) Unwrap() error { return e.Err }
