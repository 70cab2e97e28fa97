package cli

import (
	"errors"
	"io/fs"
	"os"
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
		return nil, usagef("%s is a directory: name a file, which need not exist", path)
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
