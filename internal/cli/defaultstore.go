package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"runtime"

	"github.com/leasehold-go/leasehold/localdynamo"
)

// storeName is the file name of a default store.
const storeName = "locks.db"

// machineDir is the directory that an administrator may create for a store that
// all users of the machine share.
func machineDir() string {
	if runtime.GOOS == "windows" {
		return ""
	}
	return "/var/lib/leasehold"
}

// defaultStore returns the store to use if none is named: the machine's if its
// directory exists, else the user's own. If the directory exists but cannot be
// used, openMachineStore fails: if some users used one store and some another,
// two of them could hold the same key.
func defaultStore(env Env) (file string, machine bool, err error) {
	if env.MachineDir != "" {
		_, err := os.Lstat(env.MachineDir)
		if !errors.Is(err, fs.ErrNotExist) {
			return filepath.Join(env.MachineDir, storeName), true, nil
		}
	}
	dir, err := stateDir(env)
	if err != nil {
		return "", false, err
	}
	return filepath.Join(dir, storeName), false, nil
}

// openMachineStore opens the store that all users of the machine share.
func openMachineStore(file string) (localdynamo.Store, error) {
	err := makeShared(file)
	var store localdynamo.Store
	if err == nil {
		store, err = openStoreFile(file)
	}
	if err != nil {
		return nil, usagef("user %s cannot use this machine's store: %v: ask an administrator to create %s as leasehold help environment says, "+
			"or name another store with --table or --file", userName(), err, filepath.Dir(file))
	}
	return store, nil
}

// makeShared creates an empty file unless it exists. Users who may create files
// in its directory may write to it. It appears with its final mode, whatever the
// umask: other processes may open it at once.
func makeShared(file string) error {
	if _, err := os.Lstat(file); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	dir, err := os.Stat(filepath.Dir(file))
	if err != nil {
		return err
	}
	if !dir.IsDir() {
		return fmt.Errorf("%s is not a directory", filepath.Dir(file))
	}
	tmp, err := os.CreateTemp(filepath.Dir(file), temporary(file))
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name())
	defer tmp.Close()
	giveGroup(tmp, dir)
	if err := tmp.Chmod(dir.Mode() & 0o666); err != nil {
		return err
	}
	if err := os.Link(tmp.Name(), file); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

// scope says which processes share the locks of a default store.
func (p place) scope() string {
	if p.machine {
		return "locks for this machine only"
	}
	return "locks for processes of user " + userName() + " on this machine only"
}

func userName() string {
	u, err := user.Current()
	if err != nil {
		return fmt.Sprint(os.Getuid())
	}
	return u.Username
}
