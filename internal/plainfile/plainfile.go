// Package plainfile opens files in directories that other users of the machine may write to.
// It refuses a file or a symbolic link that another user may have planted there.
//
// The following rule applies to the file, and to each directory and link in its path. The
// caller is the user who runs this process. A directory is closed if it belongs to root or the
// caller and no other user may write to it. Everything in a closed directory is trusted. In any
// other directory
//
//   - a symbolic link is followed if it belongs to root or the caller, and if it has no second
//     name (hard link);
//   - a file is used if it belongs to root, the caller or the owner of the directory, or to
//     a user whom an argument of type Owner allows in addition. The file must not have a
//     second name, which could be in a directory of another user;
//   - a subdirectory in the path may belong to any user if the caller is not root, because
//     users other than root choose paths that they trust. If the caller is root, the
//     subdirectory must belong to root or to the owner of the directory. There is one
//     exception: if only the owner and the group of the directory may write to the directory,
//     the subdirectory may belong to any user.
//
// So root may write to a user's home directory, as with sudo, and to a group's directory, but in
// /tmp only to root's own files. The owner of a directory can always replace the files in it:
// the rule protects against all other users. A path may also change while it is resolved. An
// os.Root would prevent that, but it needs permission to read each directory in the path, and
// the caller may have only permission to search it (x).
//
// The package does not rely on the kernel's own protection (protected_symlinks and others in
// proc_sys_fs(5)), which may be off. On Windows, users do not share directories in this way.
// There the package refuses only links at the end of a path.
package plainfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// Owner says which users may own a file in a directory to which other users may write. In a
// closed directory any owner is allowed, because no other user can have planted the file.
type Owner int

const (
	// Trusted allows the user of this process, root, and the owner of the directory.
	Trusted Owner = iota
	// Members also allows the members of the directory's group, if the group may write to the
	// directory and users outside the group may not.
	Members
	// Anybody allows every user who may write to the directory.
	Anybody
)

// Error is returned for a file that package plainfile refuses to open.
type Error struct {
	Path, Why string
	// passes is true if a second attempt may succeed, because another process may be replacing the
	// file just now.
	passes bool
}

func (e *Error) Error() string { return e.Path + " " + e.Why }

// The function "again" opens a file, or resolves its path. If another process replaces the file at
// that moment, the function makes another attempt after a pause. It makes at most 50 attempts.
const (
	tries = 50
	pause = time.Millisecond
)

func again[T any](look func() (T, error)) (T, error) {
	for n := 1; ; n++ {
		found, err := look()
		if refused := (*Error)(nil); !errors.As(err, &refused) || !refused.passes || n == tries {
			return found, err
		}
		time.Sleep(pause)
	}
}

func changed(path string) error {
	return &Error{Path: path, Why: "changes all the time", passes: true}
}

// Open opens an existing regular file. It follows only symbolic links that the package's rule
// allows, and none at the end of path. It refuses a file with several names (hard links), unless
// owner is Trusted and the file's directory is closed.
func Open(path string, flag int, owner Owner) (*os.File, error) {
	return again(func() (*os.File, error) { return open(path, flag, owner) })
}

func open(path string, flag int, owner Owner) (*os.File, error) {
	dir, base, err := followed(path)
	if err != nil {
		return nil, err
	}
	at := filepath.Join(dir, base)
	found, err := os.Lstat(at)
	if err != nil {
		return nil, err
	}
	// Check the kind before the file is opened: opening a FIFO or a device could block, or could
	// have side effects.
	if err := kind(path, found); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(at, flag&^(os.O_CREATE|os.O_TRUNC)|noFollow|syscall.O_NONBLOCK, 0) //nolint:gosec // check examines the opened file
	if err != nil {
		if _, gone := os.Lstat(at); gone != nil {
			return nil, changed(path)
		}
		return nil, err
	}
	if err := check(f, path, dir, base, owner); err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

// check returns nil only if path still leads to the opened file f and the rule of package plainfile
// allows the use of f.
func check(f *os.File, path, dir, base string, owner Owner) error {
	opened, err := f.Stat()
	if err != nil {
		return err
	}
	again, _, err := followed(path)
	if err != nil {
		return err
	}
	named, err := os.Lstat(filepath.Join(again, base))
	if err != nil || again != dir || !os.SameFile(opened, named) {
		return changed(path)
	}
	if err := kind(path, opened); err != nil {
		return err
	}
	in, err := os.Stat(dir)
	if err != nil {
		return err
	}
	return mayUse(path, opened, in, owner)
}

// kind returns an error unless info describes a regular file.
func kind(path string, info fs.FileInfo) error {
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		return &Error{Path: path, Why: "is a symbolic link: name the file itself"}
	case info.IsDir():
		return &Error{Path: path, Why: "is a directory: name a file in it"}
	case !info.Mode().IsRegular():
		return &Error{Path: path, Why: "is not a regular file: name another file, which need not exist"}
	}
	return nil
}

// Dir returns the directory of a file, with all symbolic links resolved. It follows only links
// that the rule of package plainfile allows.
func Dir(path string) (string, error) {
	dir, _, err := followed(path)
	return dir, err
}

func followed(path string) (dir, base string, err error) { return walk(path, false) }

// Named returns path with all symbolic links resolved, including one at the end. The file need not
// exist. If it exists and the package's rule does not allow its use, Named returns an error. Named
// returns the path of a stream (IsStream) unchanged.
func Named(path string) (string, error) {
	return again(func() (string, error) { return named(path) })
}

func named(path string) (string, error) {
	if IsStream(path) {
		return path, nil
	}
	dir, base, err := walk(path, true)
	if err != nil {
		return "", err
	}
	at := filepath.Join(dir, base)
	if IsStream(at) {
		return at, nil
	}
	found, err := os.Lstat(at)
	if errors.Is(err, fs.ErrNotExist) {
		return at, nil
	}
	if err != nil {
		return "", err
	}
	in, err := os.Stat(dir)
	if err != nil {
		return "", err
	}
	return at, mayUse(path, found, in, Trusted)
}

// mayUse returns an error if another user may have planted the file in its directory.
func mayUse(path string, file, in fs.FileInfo, owner Owner) error {
	if n := names(file); n > 1 && file.Mode().IsRegular() && (owner != Trusted || !closed(in)) {
		return &Error{Path: path, passes: true, Why: fmt.Sprintf("has %d names (hard links), and one of them may be another user's: find -inum tells, remove the other", n)}
	}
	if !mayOwn(file, in, owner) {
		return &Error{Path: path, Why: "belongs to " + ownerName(file) + ", in a directory that others may write to: name a file of your own"}
	}
	return nil
}

// IsStream reports whether a path, such as /dev/stdin, stands for an open file of a process.
// Renaming another file to such a path would not replace the open file.
func IsStream(path string) bool {
	abs, err := filepath.Abs(path)
	if err != nil {
		return false
	}
	switch abs {
	case "/dev/stdin", "/dev/stdout", "/dev/stderr":
		return true
	}
	return strings.HasPrefix(abs, "/dev/fd/") || strings.HasPrefix(abs, "/proc/")
}

const mostLinks = 40 // Linux follows at most this many links in one path

// walk resolves the symbolic links in a path. It returns the directory of the file, and the
// file's name in that directory. If toTheEnd is true, walk also follows a link at the end of the
// path. The file need not exist.
func walk(path string, toTheEnd bool) (dir, base string, err error) {
	dir, rest := split(path)
	for links := 0; len(rest) > 0; {
		name, last := rest[0], len(rest) == 1
		if last && !toTheEnd {
			return filepath.Join(dir, "."), name, nil
		}
		rest = rest[1:]
		// All links in dir have been resolved, so filepath.Join resolves ".." correctly.
		next := filepath.Join(dir, name)
		if name == "" || name == "." || name == ".." {
			dir = next
			continue
		}
		if last && IsStream(next) {
			return filepath.Join(dir, "."), name, nil
		}
		to, err := step(dir, next)
		switch {
		case last && (errors.Is(err, fs.ErrNotExist) || err == nil && to == ""):
			return filepath.Join(dir, "."), name, nil
		case err != nil:
			return "", "", err
		case to == "":
			dir = next
			continue
		}
		if links++; links > mostLinks {
			return "", "", &Error{Path: path, Why: "has too many symbolic links"}
		}
		begin, more := split(to)
		if filepath.IsAbs(to) {
			dir = begin
		}
		rest = append(more, rest...)
	}
	return filepath.Join(dir, "."), "", nil
}

// split returns the root of a path, and the names of the directories and the file below the
// root.
func split(path string) (begin string, parts []string) {
	begin = filepath.VolumeName(path)
	parts = strings.Split(filepath.ToSlash(path[len(begin):]), "/")
	if parts[0] == "" && len(parts) > 1 {
		begin += string(filepath.Separator)
	}
	return begin, parts
}

// step checks whether walk may pass through the entry "next" of dir. It returns the target if the
// entry is a symbolic link that walk must follow, and "" otherwise.
func step(dir, next string) (to string, err error) {
	info, err := os.Lstat(next)
	if err != nil {
		return "", err
	}
	link := info.Mode()&fs.ModeSymlink != 0
	// Keep a link under /proc in the path (proc_pid_root(5)). Do not refuse it: the kernel makes
	// these links, so no user can plant them. Do not follow it: the text of such a link is not always
	// the path of the target.
	if link && strings.HasPrefix(next, "/proc/") {
		return "", nil
	}
	// Use Stat instead of Lstat, because dir may itself be a link under /proc that walk has kept.
	in, err := os.Stat(filepath.Join(dir, "."))
	switch {
	case err != nil:
		return "", err
	case info.IsDir() && !mayPass(info, in):
		return "", &Error{Path: next, Why: "is a directory of " + ownerName(info) + ", in one that others may write to: name a file in a directory of your own"}
	case !link:
		return "", nil
	case names(info) == 0: // another file has just replaced the link, so the link has no name left
		return "", changed(next)
	case !mayLead(info, in):
		return "", &Error{Path: next, Why: "is a symbolic link of " + ownerName(info) + ", in a directory that others may write to: name what it points to, if that is meant"}
	}
	return os.Readlink(next)
}
