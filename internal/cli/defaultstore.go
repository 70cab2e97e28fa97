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
	"github.com/leasehold-go/leasehold/localdynamo/boltstore"
)

// storeName is the file of a store that nobody named, in its directory.
const storeName = "locks.db"

// machineDir is where an administrator makes a directory for the store of all
// users of a machine.
func machineDir() string {
	if runtime.GOOS == "windows" {
		return ""
	}
	return "/var/lib/leasehold"
}

// defaultStore is the store where nobody names one: the machine's if its
// directory is there, else the user's own. That the directory is there and
// does not do is an error: with some users in one store and some in another,
// two would hold one key.
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
		store, err = boltstore.Open(file)
	}
	if err != nil {
		return nil, usagef("the store of this machine cannot be used by user %s: %v: have its administrator make %s as leasehold help environment says, "+
			"or name another store: --table, or --file PATH", userName(), err, filepath.Dir(file))
	}
	return store, nil
}

// makeShared makes an empty file that those may write to who may make files in
// its directory. It appears with its mode, whatever the umask says: others may
// be waiting for it.
func makeShared(file string) error {
	if _, err := os.Lstat(file); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	dir, err := os.Stat(filepath.Dir(file))
	if err != nil {
		return err
	}
	if !dir.IsDir() {
		return fmt.Errorf("%s is no directory", filepath.Dir(file))
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

// whose says for whom the locks of a store are that nobody named.
func (p place) whose() string {
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
