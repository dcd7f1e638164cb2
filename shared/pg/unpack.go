package pg

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"

	"github.com/xi2/xz"
)

// largestFile bounds one unpacked file; the largest real one is about 40 MB.
const largestFile = 256 << 20

// unpack writes the .txz inside the jar to dir, readable by everybody.
func unpack(dir string, jar []byte) error {
	archive, err := zip.NewReader(bytes.NewReader(jar), int64(len(jar)))
	if err != nil {
		return err
	}
	for _, entry := range archive.File {
		if strings.HasSuffix(entry.Name, ".txz") {
			return unpackEntry(dir, entry)
		}
	}
	return errors.New("there is no .txz file in the jar")
}

func unpackEntry(dir string, entry *zip.File) error {
	packed, err := entry.Open()
	if err != nil {
		return err
	}
	defer func() { _ = packed.Close() }()
	unpacked, err := xz.NewReader(packed, 0)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // Postgres' account must read it
		return err
	}
	// A root refuses whatever would lie outside of it, symbolic links included.
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	files := tar.NewReader(unpacked)
	for {
		header, err := files.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = unpackFile(root, header, files)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", entry.Name, err)
		}
	}
}

func unpackFile(root *os.Root, header *tar.Header, content io.Reader) error {
	name := path.Clean(header.Name)
	if header.Typeflag == tar.TypeDir {
		return root.MkdirAll(name, 0o755)
	}
	if err := root.MkdirAll(path.Dir(name), 0o755); err != nil {
		return err
	}
	switch header.Typeflag {
	case tar.TypeSymlink:
		return root.Symlink(header.Linkname, name)
	case tar.TypeReg:
	default:
		return fmt.Errorf("%s: a %q entry is not expected", name, header.Typeflag)
	}
	mode := fs.FileMode(0o644)
	if header.FileInfo().Mode()&0o100 != 0 {
		mode = 0o755
	}
	f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, mode)
	if err != nil {
		return err
	}
	n, err := io.Copy(f, io.LimitReader(content, largestFile+1))
	if n > largestFile {
		err = fmt.Errorf("%s is larger than %d MiB", name, largestFile>>20)
	}
	return errors.Join(err, f.Chmod(mode), f.Close()) // Chmod: whatever the umask is
}
