package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	bolterrors "go.etcd.io/bbolt/errors"

	"github.com/leasehold-go/leasehold/internal/cli/failure"
	"github.com/leasehold-go/leasehold/internal/cli/wording"
	"github.com/leasehold-go/leasehold/internal/filefault"
	"github.com/leasehold-go/leasehold/internal/plainfile"
	"github.com/leasehold-go/leasehold/localdynamo"
	"github.com/leasehold-go/leasehold/localdynamo/boltstore"
)

// DefaultFile is the base name of the default local store's file.
const DefaultFile = "locks.db"

// defaultFile returns the file of the default local store.
//
// If MachineDir exists, the default store is the machine's store, even for a user who cannot use
// it: openMachineStore then returns an error. With another store, this user could hold a key that
// another user holds in the machine's store.
//
// Otherwise the default store is the user's own store. For root, defaultFile returns an error if
// the directory of that store belongs to another user, because that user could replace the file.
func (s *Settings) defaultFile() (file string, machine bool, err error) {
	if s.MachineDir != "" && !missing(s.MachineDir) {
		return filepath.Join(s.MachineDir, DefaultFile), true, nil
	}
	dir, err := s.stateDir()
	if err != nil {
		return "", false, err
	}
	if whose := plainfile.Another(dir); whose != "" && os.Geteuid() == 0 {
		return "", false, failure.Misusef("no table, and the home of root here belongs to %s (%s): use sudo -H, --table, or --file PATH", whose, dir)
	}
	return filepath.Join(dir, DefaultFile), false, nil
}

// stateDir returns the directory of the user's own local store, as in the XDG Base
// Directory Specification.
func (s *Settings) stateDir() (string, error) {
	if dir := s.Getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "leasehold"), nil
	}
	if home := s.Getenv("HOME"); home != "" {
		return filepath.Join(home, ".local", "state", "leasehold"), nil
	}
	return "", failure.Misusef("no table, and no place for a local store, as neither HOME nor XDG_STATE_HOME is set: use --table, or --file PATH")
}

// openMachineStore opens the machine's store, which all users of the machine share. It
// creates the file if it does not exist.
func openMachineStore(ctx context.Context, file string) (localdynamo.Store, error) {
	var store localdynamo.Store
	_, err := makeShared(file)
	fault, known := filefault.Of(err)
	switch {
	case known:
		return nil, failure.Misusef("cannot use %s: %s", file, fault)
	case err != nil:
		err = deniedError{err}
	default:
		store, err = openFile(ctx, file, boltstore.OfAnyUser())
	}
	if errors.As(err, new(deniedError)) {
		return nil, failure.Misusef("user %s cannot use this machine's store: %v: ask an administrator to create %s as leasehold help environment says, "+
			"or name another store with --table or --file", userName(), err, filepath.Dir(file))
	}
	return store, err
}

// makeShared creates the file of the machine's store, unless it exists, and reports whether it did.
// Every user who may create files in the directory may also write to the file, whatever the umask.
// The file gets its mode before its final name, under which other processes may open it immediately.
func makeShared(file string) (made bool, err error) {
	if _, err := os.Lstat(file); !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	dir, err := os.Stat(filepath.Dir(file))
	if err != nil {
		return false, err
	}
	if !dir.IsDir() {
		return false, fmt.Errorf("%s is not a directory", filepath.Dir(file))
	}
	return boltstore.Make(file, func(f *os.File) error {
		giveGroup(f, dir)
		return f.Chmod(dir.Mode() & 0o666)
	})
}

// userName returns the name of the user who runs leasehold. It returns the numeric id if
// the name is unknown.
func userName() string {
	u, err := user.Current()
	if err != nil {
		return fmt.Sprint(os.Getuid())
	}
	return u.Username
}

// AWSFlag returns the name of the first flag that is given and applies only to DynamoDB,
// such as --region. It returns "" if no such flag is given.
func (s *Settings) AWSFlag() string {
	for i, value := range s.ForAWS() {
		if *value != "" {
			return awsFlags[i]
		}
	}
	return ""
}

// asksForDynamoDB returns the name of a flag, or of a LEASEHOLD_ variable, that is set and
// applies only to DynamoDB. It returns "" if none is set.
func (s *Settings) asksForDynamoDB() string { return cmp.Or(s.AWSFlag(), s.firstSet(AWSVariables...)) }

// signOfAWS looks for a flag, variable or file that suggests that the user uses AWS. It returns a
// clause about the first one, such as "AWS_REGION is set", or "" if it finds none.
func (s *Settings) signOfAWS() string {
	set := cmp.Or(s.asksForDynamoDB(), s.firstSet(
		"AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE", "AWS_ACCESS_KEY_ID",
		"AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "AWS_CONTAINER_CREDENTIALS_FULL_URI",
		"AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_ENDPOINT_URL_DYNAMODB", "AWS_ENDPOINT_URL",
		"AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE", "AWS_DEFAULT_PROFILE", "AWS_ROLE_ARN",
		"AWS_EXECUTION_ENV", "ECS_CONTAINER_METADATA_URI_V4", "ECS_CONTAINER_METADATA_URI",
	))
	if set != "" {
		return set + " is set"
	}
	if home := s.Getenv("HOME"); home != "" {
		for _, name := range []string{"config", "credentials"} {
			if _, err := os.Stat(filepath.Join(home, ".aws", name)); err == nil {
				return filepath.Join("~", ".aws", name) + " exists"
			}
		}
	}
	return ""
}

// openFile opens the file of a local store. If it fails, its error says why path cannot be
// used as a store.
func openFile(ctx context.Context, path string, options ...boltstore.Option) (localdynamo.Store, error) {
	const another = "name another file, which need not exist"
	info, err := os.Lstat(path)
	switch {
	case err == nil && info.IsDir():
		return nil, failure.Misusef("%s is a directory: name a file in it", path)
	case err == nil && info.Mode()&fs.ModeSymlink == 0 && !info.Mode().IsRegular():
		return nil, failure.Misusef("%s is not a regular file: %s", path, another)
	case errors.Is(err, syscall.ENOTDIR):
		return nil, failure.Misusef("%s: a part of the path is not a directory: %s", path, another)
	}
	exists := err == nil
	began := time.Now()
	store, err := boltstore.OpenContext(ctx, path, options...)
	if err == nil {
		return store, nil
	}
	wrong, disked := filefault.Of(err)
	var in *fs.PathError
	var refused *plainfile.Error
	switch {
	case errors.As(err, &refused):
		return nil, deniedError{failure.Misusef("%v", refused)}
	case errors.Is(err, boltstore.ErrEmpty):
		return nil, failure.Misusef("%s is no longer a store: %v", path, boltstore.ErrEmpty)
	case errors.Is(err, boltstore.ErrBusy):
		return nil, failure.Like(err, fmt.Sprintf("%s was busy for %s: another process keeps it locked: end that process, or continue it if it was stopped; fuser(1) names it",
			path, wording.Age(time.Since(began).Round(time.Second))))
	case exists && (errors.Is(err, bolterrors.ErrInvalid) || errors.Is(err, bolterrors.ErrVersionMismatch) || errors.Is(err, bolterrors.ErrChecksum)):
		return nil, failure.Misusef("%s is not a leasehold store: %s", path, another)
	case disked:
		return nil, failure.Misusef("cannot use %s: %s", path, wrong)
	case errors.As(err, &in) && in.Op == "mkdir":
		return nil, deniedError{failure.Misusef("cannot create the directory of %s: %v", path, in.Err)}
	case errors.Is(err, fs.ErrPermission):
		return nil, deniedError{failure.Misusef("cannot use %s: %v: it belongs to another user, or its directory does", path, failure.WithoutPath(err))}
	case errors.As(err, &in):
		return nil, failure.Misusef("cannot open %s: %v", path, in.Err)
	}
	return nil, failure.Misusef("%s", strings.TrimPrefix(err.Error(), "boltstore: "))
}

// deniedError means that this user may not use the file of a local store.
type deniedError struct{ error }

func (e deniedError) Unwrap() error { return e.error }

// missing reports whether no file exists at path.
func missing(path string) bool {
	_, err := os.Lstat(path) // unlike Stat, Lstat also finds a symbolic link whose target does not exist
	return errors.Is(err, fs.ErrNotExist)
}

// MakeFile creates the file of a local store at path, unless it exists, and reports whether it did.
// It creates no directory except the directory of the default store. Otherwise a process with a
// mistyped path would use a store of its own, and exclude no other process.
func (s *Settings) MakeFile(path string) (made bool, err error) {
	if !missing(path) {
		return false, nil
	}
	if dir := filepath.Dir(path); missing(dir) {
		if standard, _, err := s.defaultFile(); err != nil || standard != path {
			return false, failure.Misusef("no such directory: %s: make it, or check --file and LEASEHOLD_FILE", dir)
		}
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return false, failure.Misusef("cannot create the directory of %s: %v", path, failure.WithoutPath(err))
		}
	} else if s.isMachines(path) {
		made, _ = makeShared(path)
		return made, nil
	}
	made, _ = boltstore.Make(path, nil)
	return made, nil // errors of Make are ignored, because OpenFile later reports why the file cannot be created
}

// isMachines reports whether path is the file of the machine's store, which may belong to any user.
func (s *Settings) isMachines(path string) bool {
	abs, err := filepath.Abs(path)
	return err == nil && abs == filepath.Join(s.MachineDir, DefaultFile)
}

// OpenFile opens the file of a local store. If another process has locked the file, OpenFile
// waits until the file is unlocked or ctx is cancelled.
func (s *Settings) OpenFile(ctx context.Context, path string) (localdynamo.Store, error) {
	if s.isMachines(path) {
		return openMachineStore(ctx, path)
	}
	return openFile(ctx, path)
}
