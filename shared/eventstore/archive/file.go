package archive

import (
	"bufio"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"
	"time"
)

// format names the layout of a file; another layout gets another name.
const format = "feira.events.v1"

// Header is the first line of an archive.
type Header struct {
	Format  string `json:"format"`
	Service string `json:"service"`
	Low     int64  `json:"low"`  // positions from Low
	High    int64  `json:"high"` // up to, and without, High
}

// Event is a row of the table of events.
type Event struct {
	Position   int64     `json:"position"`
	Stream     string    `json:"stream"`
	Version    int64     `json:"version"`
	Type       string    `json:"type"`
	Key        string    `json:"key"`
	Data       string    `json:"data"` // JSON, byte for byte
	Meta       string    `json:"meta"` // JSON, byte for byte
	RecordedAt time.Time `json:"recorded_at"`
}

func (e Event) equal(o Event) bool {
	at := e.RecordedAt.Equal(o.RecordedAt)
	e.RecordedAt, o.RecordedAt = time.Time{}, time.Time{}
	return at && e == o
}

// Trailer is the last line of an archive: without it the file is not whole.
type Trailer struct {
	Events int64 `json:"events"`
	Last   int64 `json:"last"` // position of the last event; Low - 1: there is none
}

// line is any line of an archive.
type line struct {
	*Header  `json:",omitempty"`
	*Event   `json:",omitempty"`
	*Trailer `json:",omitempty"`
}

// name is what the file of a part is called.
func (h Header) name() string {
	return fmt.Sprintf("%s-events-%012d-%012d.jsonl.gz", h.Service, h.Low, h.High-1)
}

// writer writes an archive under a name that says that it is not finished.
type writer struct {
	path string // that it will have
	file *os.File
	sum  hash.Hash
	out  *bufio.Writer
	zip  *gzip.Writer
	json *json.Encoder
	end  Trailer
}

func (w *writer) unfinished() string { return w.path + ".unfinished" }

func create(dir string, h Header) (*writer, error) {
	w := &writer{path: filepath.Join(dir, h.name()), sum: sha256.New(), end: Trailer{Last: h.Low - 1}}
	var err error
	if w.file, err = os.OpenFile(w.unfinished(), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600); err != nil {
		return nil, fmt.Errorf("archive: %w", err)
	}
	w.out = bufio.NewWriterSize(io.MultiWriter(w.file, w.sum), 1<<20)
	// The fastest level: the data is mostly names and ids, of which more effort saves little.
	if w.zip, err = gzip.NewWriterLevel(w.out, gzip.BestSpeed); err != nil {
		return nil, errors.Join(err, w.file.Close())
	}
	w.json = json.NewEncoder(w.zip)
	w.json.SetEscapeHTML(false)
	return w, w.json.Encode(line{Header: &h})
}

func (w *writer) write(e Event) error {
	w.end.Events++
	w.end.Last = e.Position
	return w.json.Encode(line{Event: &e})
}

// finish makes the file durable under its unfinished name.
func (w *writer) finish() error {
	err := w.json.Encode(line{Trailer: &w.end})
	return errors.Join(err, w.zip.Close(), w.out.Flush(), w.file.Sync(), w.file.Close())
}

// publish gives a verified file its name, and puts its digest beside it.
func (w *writer) publish() error {
	digest := fmt.Sprintf("%s  %s\n", hex.EncodeToString(w.sum.Sum(nil)), filepath.Base(w.path))
	if err := os.WriteFile(w.path+".sha256", []byte(digest), 0o600); err != nil {
		return fmt.Errorf("archive: %w", err)
	}
	if err := os.Rename(w.unfinished(), w.path); err != nil {
		return fmt.Errorf("archive: %w", err)
	}
	dir, err := os.Open(filepath.Dir(w.path))
	if err != nil {
		return fmt.Errorf("archive: %w", err)
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// reader reads an archive, and says what it is the digest of when it was read to its end.
type reader struct {
	Header
	path string
	file *os.File
	sum  hash.Hash
	raw  io.Reader
	json *json.Decoder
	last int64
	seen int64
}

// Read opens an archive and reads its header. Error: [*FileError].
func Read(path string) (Header, error) {
	r, err := open(path)
	if err != nil {
		return Header{}, err
	}
	return r.Header, r.close()
}

func open(path string) (*reader, error) {
	file, err := os.Open(path) //nolint:gosec // a person names it
	if err != nil {
		return nil, fmt.Errorf("archive: %w", err)
	}
	r := &reader{path: path, file: file, sum: sha256.New()}
	r.raw = io.TeeReader(bufio.NewReaderSize(file, 1<<20), r.sum)
	unzipped, err := gzip.NewReader(r.raw)
	if err != nil {
		return nil, errors.Join(r.wrong("it is no gzip file"), file.Close())
	}
	r.json = json.NewDecoder(bufio.NewReaderSize(unzipped, 1<<20))
	var first line
	if err := r.json.Decode(&first); err != nil || first.Header == nil || first.Format != format {
		return nil, errors.Join(r.wrong("its first line is not that of an archive of events ("+format+")"), file.Close())
	}
	r.Header, r.last = *first.Header, first.Low-1
	return r, nil
}

func (r *reader) close() error { return r.file.Close() }

func (r *reader) wrong(reason string) error { return &FileError{File: r.path, Reason: reason} }

// next gives the next event, and false after the last one of a whole file.
func (r *reader) next() (Event, bool, error) {
	var l line
	if err := r.json.Decode(&l); err != nil {
		return Event{}, false, r.wrong("it is damaged, or its end is missing: " + err.Error())
	}
	switch e, end := l.Event, l.Trailer; {
	case end != nil && end.Events == r.seen && end.Last == r.last:
		return Event{}, false, nil
	case e == nil || e.Position <= r.last || e.Position >= r.High:
		return Event{}, false, r.wrong(fmt.Sprintf("the line after position %d does not follow", r.last))
	default:
		r.seen++
		r.last = e.Position
		return *e, true, nil
	}
}

// digest is the SHA-256 of the whole file, in hex.
func (r *reader) digest() (string, error) {
	if _, err := io.Copy(io.Discard, r.raw); err != nil {
		return "", r.wrong(err.Error())
	}
	return hex.EncodeToString(r.sum.Sum(nil)), nil
}

// digestOf is the SHA-256 of a file, in hex, and its size.
func digestOf(path string) (string, int64, error) {
	file, err := os.Open(path) //nolint:gosec // as it was written, or a person names it
	if err != nil {
		return "", 0, fmt.Errorf("archive: %w", err)
	}
	defer file.Close()
	sum := sha256.New()
	n, err := io.Copy(sum, file)
	if err != nil {
		return "", 0, fmt.Errorf("archive: read %s: %w", path, err)
	}
	return hex.EncodeToString(sum.Sum(nil)), n, nil
}
