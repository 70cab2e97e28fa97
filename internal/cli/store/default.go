package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"runtime"

	"github.com/leasehold-go/leasehold/internal/cli/misuse"
	"github.com/leasehold-go/leasehold/internal/plainfile"
	"github.com/leasehold-go/leasehold/localdynamo"
	"github.com/leasehold-go/leasehold/localdynamo/boltstore"
)

// DefaultFile is the file name of a default store.
const DefaultFile = "locks.db"

// MachineDir is the directory that an administrator may create for a store that
// all users of the machine share.
func MachineDir() string {
	if runtime.GOOS == "windows" {
		return ""
	}
	return "/var/lib/leasehold"
}

// defaultFile returns the store to use if none is named: the machine's if its
// directory exists, else the user's own. If the directory exists but cannot be
// used, openMachineStore fails: if some users used one store and some another,
// two of them could hold the same key. Root makes none in another user's home: whoever
// owns the directory can put another in its place.
func (s *Settings) defaultFile() (file string, machine bool, err error) {
	if s.MachineDir != "" {
		_, err := os.Lstat(s.MachineDir)
		if !errors.Is(err, fs.ErrNotExist) {
			return filepath.Join(s.MachineDir, DefaultFile), true, nil
		}
	}
	dir, err := s.StateDir()
	if err != nil {
		return "", false, err
	}
	if whose := plainfile.Another(dir); whose != "" && os.Geteuid() == 0 {
		return "", false, misuse.Errorf("no table, and the home of root here is that of %s (%s): use sudo -H, --table, or --file PATH", whose, dir)
	}
	return filepath.Join(dir, DefaultFile), false, nil
}

// StateDir is the directory of the user's local store (XDG Base Directory
// Specification).
func (s *Settings) StateDir() (string, error) {
	if dir := s.get("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "leasehold"), nil
	}
	if home := s.get("HOME"); home != "" {
		return filepath.Join(home, ".local", "state", "leasehold"), nil
	}
	return "", misuse.Errorf("no table, and no place for a local store, as neither HOME nor XDG_STATE_HOME is set: use --table, or --file PATH")
}

// openMachineStore opens the store that all users of the machine share.
func openMachineStore(file string) (localdynamo.Store, error) {
	err := makeShared(file)
	var store localdynamo.Store
	if err == nil {
		store, err = openFile(file, boltstore.OfAnyUser())
	}
	if err != nil {
		return nil, misuse.Errorf("user %s cannot use this machine's store: %v: ask an administrator to create %s as leasehold help environment says, "+
			"or name another store with --table or --file", UserName(), err, filepath.Dir(file))
	}
	return store, nil
}

// makeShared makes a store unless the file exists. Users who may create files in its
// directory may write to it. It appears with its final mode, whatever the umask: other
// processes may open it at once.
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
	_, err = boltstore.Make(file, func(f *os.File) error {
		giveGroup(f, dir)
		return f.Chmod(dir.Mode() & 0o666)
	})
	return err
}

// Scope says which processes share the locks of a default store.
func (p Place) Scope() string {
	if p.Machine {
		return "locks for this machine only"
	}
	return "locks for processes of user " + UserName() + " on this machine only"
}

// UserName is the name of the user who runs leasehold, or his number.
func UserName() string {
	u, err := user.Current()
	if err != nil {
		return fmt.Sprint(os.Getuid())
	}
	return u.Username
}
