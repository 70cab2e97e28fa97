package boltstore

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/leasehold-go/leasehold/internal/plainfile"
	"go.etcd.io/bbolt"
)

// ErrEmpty is returned if the file has zero bytes. Make never leaves such a file, so the file
// was truncated. Make does not replace it with a new store: the new store would contain no
// locks, although processes may still hold locks.
var ErrEmpty = errors.New("the file is empty, and a store never is: it was truncated, by a full disk or a redirection (>): " +
	"put back a copy, or end what uses it and remove it: then nothing is held, and the next command makes a new one")

// Make creates a new store, unless the file exists. The file gets its name only when its content is
// complete, so no process opens an unfinished store. If prepare is not nil, Make calls it before
// that, for example to change the mode from 0600.
func Make(path string, prepare func(*os.File) error) (made bool, err error) {
	dir, err := plainfile.Dir(path)
	if err != nil {
		return false, err
	}
	f, err := os.CreateTemp(dir, "."+filepath.Base(path)+"-*")
	if err != nil {
		return false, err
	}
	// After a successful rename, Remove fails, because the temporary file no longer exists.
	defer os.Remove(f.Name())
	if prepare != nil {
		err = prepare(f)
	}
	if err != nil {
		return false, errors.Join(err, f.Close())
	}
	// bbolt receives the open file. If bbolt opened a file by its name, another user could have
	// replaced that file.
	options := *bbolt.DefaultOptions
	options.OpenFile = func(string, int, fs.FileMode) (*os.File, error) { return f, nil }
	db, err := bbolt.Open(f.Name(), 0o600, &options)
	if err != nil {
		return false, err // bbolt has closed the file
	}
	err = grown(f.Name(), db.Update(func(tx *bbolt.Tx) error {
		_, err := tx.CreateBucket(bucket)
		return err
	}))
	if err := errors.Join(err, db.Close()); err != nil {
		return false, err
	}
	err = plainfile.Place(f.Name(), filepath.Join(dir, filepath.Base(path)))
	if errors.Is(err, fs.ErrExist) {
		return false, nil
	}
	return err == nil, err
}

// openOrMake opens the file of a store, or makes a new store if the file does not exist. It does
// not use O_CREAT, which Linux refuses for another user's file in a directory that all users may
// write to (protected_regular in proc_sys_fs(5)).
func openOrMake(path string, flag int, owner plainfile.Owner) (*os.File, error) {
	f, err := plainfile.Open(path, flag, owner)
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := Make(path, nil); err != nil {
			return nil, err
		}
		f, err = plainfile.Open(path, flag, owner)
	}
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && info.Size() == 0 {
		err = ErrEmpty
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}
