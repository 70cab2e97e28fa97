package cli

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	bolterrors "go.etcd.io/bbolt/errors"

	"github.com/leasehold-go/leasehold/localdynamo"
	"github.com/leasehold-go/leasehold/localdynamo/boltstore"
)

// openStoreFile opens the file of a local store, and says in plain words why it
// cannot be one.
func openStoreFile(path string) (localdynamo.Store, error) {
	const another = "name another file, which need not exist"
	info, err := os.Stat(path)
	switch {
	case err == nil && info.IsDir():
		return nil, usagef("%s is a directory: name a file in it", path)
	case err == nil && !info.Mode().IsRegular():
		return nil, usagef("%s is not a regular file: %s", path, another)
	case errors.Is(err, syscall.ENOTDIR):
		return nil, usagef("%s: a part of the path is not a directory: %s", path, another)
	}
	exists := err == nil
	store, err := boltstore.Open(path)
	var in *fs.PathError
	switch {
	case err == nil:
		return store, nil
	case exists && (errors.Is(err, bolterrors.ErrInvalid) || errors.Is(err, bolterrors.ErrVersionMismatch) || errors.Is(err, bolterrors.ErrChecksum)):
		return nil, usagef("%s is not a leasehold store: %s", path, another)
	case errors.As(err, &in) && in.Op == "mkdir":
		return nil, usagef("cannot create the directory of %s: %v", path, in.Err)
	case errors.Is(err, fs.ErrPermission):
		return nil, usagef("cannot use %s: %v: it belongs to another user, or its directory does", path, withoutPath(err))
	case errors.As(err, &in):
		return nil, usagef("cannot open %s: %v", path, in.Err)
	}
	return nil, usagef("%s", strings.TrimPrefix(err.Error(), "boltstore: "))
}

// missing reports whether there is no file of that name.
func missing(path string) bool {
	_, err := os.Stat(path)
	return errors.Is(err, fs.ErrNotExist)
}

// makeStoreFile creates the file of a store that was named, unless it exists, and
// reports whether it did. It does not create the directory: of two processes that
// should share a store, one with a mistyped path would lock for itself alone. The
// directory of the default store is the exception, which may be named too.
func makeStoreFile(env Env, path string) (made bool, err error) {
	dir := filepath.Dir(path)
	if dir == env.MachineDir && filepath.Base(path) == storeName && missing(path) && !missing(dir) {
		return true, makeShared(path) // or its other users could not use it
	}
	if missing(dir) {
		if standard, _, err := defaultStore(env); err != nil || standard != path {
			return false, usagef("no such directory: %s: make it, or check --file and LEASEHOLD_FILE", dir)
		}
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return false, usagef("cannot create the directory of %s: %v", path, withoutPath(err))
		}
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return false, nil // it exists, or openStoreFile says why it cannot
	}
	return true, f.Close()
}

// makeNamed makes the file of a named store unless it exists, and says so.
func (a *app) makeNamed(path string) error {
	abs, err := filepath.Abs(path)
	if err != nil {
		return usagef("--file %s: %v", path, err)
	}
	made, err := makeStoreFile(a.Env, abs)
	if made {
		a.say.note("made a new store %s: locks between processes that name this file", abs)
	}
	return err
}
