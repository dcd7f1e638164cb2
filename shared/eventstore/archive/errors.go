package archive

import (
	"fmt"
	"time"
)

// NotPublishedError says that a part has events that the relay has not published yet.
type NotPublishedError struct {
	Service   string
	Low, High int64 // of the part
	Last      int64 // position of its last event
	Published int64 // everything up to this position is
}

func (e *NotPublishedError) Error() string {
	return fmt.Sprintf("archive: %s: positions %d to %d cannot be archived: the relay has published up to %d, and the last event there is %d; "+
		"wait until it has caught up, or see why it stands still", e.Service, e.Low, e.High-1, e.Published, e.Last)
}

// OpenStreamsError says that a part has events of streams that are still being written to: their histories would be cut.
type OpenStreamsError struct {
	Service   string
	Low, High int64 // of the part
	Streams   int64 // how many there are
	Example   string
	Quiet     time.Duration // none was to be written to for so long
}

func (e *OpenStreamsError) Error() string {
	return fmt.Sprintf("archive: %s: positions %d to %d cannot be archived: %d streams with events there, such as %s, were written to in the last %s, "+
		"so their histories would be cut; wait, or archive it with --cut: their states stay, their histories need the file", e.Service, e.Low, e.High-1, e.Streams, e.Example, e.Quiet)
}

// FileError says that a file is not the archive it should be.
type FileError struct {
	File   string
	Reason string
}

func (e *FileError) Error() string {
	return fmt.Sprintf("archive: the file %s cannot be used: %s", e.File, e.Reason)
}

// OrderError says that another file is to be brought back first: what is archived is everything up to one position.
type OrderError struct {
	File   string // that was given
	Latest string // as it was named when it was written
}

func (e *OrderError) Error() string {
	return fmt.Sprintf("archive: bring back %s before %s: archives come back the latest first", e.Latest, e.File)
}

// BusyError says that another process is archiving, or bringing back, parts of the same store.
type BusyError struct{ Service string }

func (e *BusyError) Error() string {
	return fmt.Sprintf("archive: another process is archiving parts of %s, or bringing them back; wait until it has ended", e.Service)
}

// UnfinishedError says that the archiving of a part was interrupted after its file was complete.
type UnfinishedError struct {
	Service   string
	Low, High int64
}

func (e *UnfinishedError) Error() string {
	return fmt.Sprintf("archive: %s: the archiving of positions %d to %d was interrupted; run `feira admin archive %s` again, which finishes it, "+
		"then bring it back", e.Service, e.Low, e.High-1, e.Service)
}
