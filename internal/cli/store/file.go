package store

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	bolterrors "go.etcd.io/bbolt/errors"

	"github.com/leasehold-go/leasehold/internal/cli/failure"
	"github.com/leasehold-go/leasehold/internal/cli/misuse"
	"github.com/leasehold-go/leasehold/internal/plainfile"
	"github.com/leasehold-go/leasehold/localdynamo"
	"github.com/leasehold-go/leasehold/localdynamo/boltstore"
)

// openFile opens the file of a local store, and says in plain words why it
// cannot be one.
func openFile(path string, options ...boltstore.Option) (localdynamo.Store, error) {
	const another = "name another file, which need not exist"
	info, err := os.Lstat(path)
	switch {
	case err == nil && info.IsDir():
		return nil, misuse.Errorf("%s is a directory: name a file in it", path)
	case err == nil && info.Mode()&fs.ModeSymlink == 0 && !info.Mode().IsRegular():
		return nil, misuse.Errorf("%s is not a regular file: %s", path, another)
	case errors.Is(err, syscall.ENOTDIR):
		return nil, misuse.Errorf("%s: a part of the path is not a directory: %s", path, another)
	}
	exists := err == nil
	store, err := boltstore.Open(path, options...)
	if err == nil {
		return store, nil
	}
	wrong, disked := failure.DiskIn(err.Error())
	var in *fs.PathError
	var refused *plainfile.Error
	switch {
	case errors.As(err, &refused):
		return nil, misuse.Errorf("%v", refused)
	case errors.Is(err, boltstore.ErrEmpty):
		return nil, misuse.Errorf("%s is not a store any more: %v", path, boltstore.ErrEmpty)
	case exists && (errors.Is(err, bolterrors.ErrInvalid) || errors.Is(err, bolterrors.ErrVersionMismatch) || errors.Is(err, bolterrors.ErrChecksum)):
		return nil, misuse.Errorf("%s is not a leasehold store: %s", path, another)
	case disked:
		return nil, misuse.Errorf("cannot use %s: %s", path, wrong)
	case errors.As(err, &in) && in.Op == "mkdir":
		return nil, misuse.Errorf("cannot create the directory of %s: %v", path, in.Err)
	case errors.Is(err, fs.ErrPermission):
		return nil, misuse.Errorf("cannot use %s: %v: it belongs to another user, or its directory does", path, failure.WithoutPath(err))
	case errors.As(err, &in):
		return nil, misuse.Errorf("cannot open %s: %v", path, in.Err)
	}
	return nil, misuse.Errorf("%s", strings.TrimPrefix(err.Error(), "boltstore: "))
}

// missing reports whether there is no file of that name.
func missing(path string) bool {
	_, err := os.Lstat(path) // a link to nothing is there, too
	return errors.Is(err, fs.ErrNotExist)
}

// MakeFile creates the file of a store that was named, unless it exists, and
// reports whether it did. It does not create the directory: of two processes that
// should share a store, one with a mistyped path would lock for itself alone. The
// directory of the default store is the exception, which may be named too.
func (s *Settings) MakeFile(path string) (made bool, err error) {
	dir := filepath.Dir(path)
	if s.IsMachines(path) && missing(path) && !missing(dir) {
		return true, makeShared(path) // or its other users could not use it
	}
	if missing(dir) {
		if standard, _, err := s.defaultFile(); err != nil || standard != path {
			return false, misuse.Errorf("no such directory: %s: make it, or check --file and LEASEHOLD_FILE", dir)
		}
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return false, misuse.Errorf("cannot create the directory of %s: %v", path, failure.WithoutPath(err))
		}
	}
	if !missing(path) {
		return false, nil
	}
	made, _ = boltstore.Make(path, nil) // openFile says why it cannot be made
	return made, nil
}

// IsMachines reports whether a path is that of the machine's store. Whoever may write to
// its directory may have made it.
func (s *Settings) IsMachines(path string) bool {
	return filepath.Dir(path) == s.MachineDir && filepath.Base(path) == DefaultFile
}

// OpenFile opens the file of a named store.
func (s *Settings) OpenFile(path string) (localdynamo.Store, error) {
	if s.IsMachines(path) {
		return openFile(path, boltstore.OfAnyUser())
	}
	return openFile(path)
}
