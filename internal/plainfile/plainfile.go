// Package plainfile opens files in directories that other users of the machine may write
// to: what is opened is what its name says, and not what somebody has planted there.
//
// The rule, for everything on the way to a file, and for the file: a directory is closed
// if it belongs to root or the caller, and nobody else may write to it. What stands in a
// closed one is trusted. In any other
//
//   - a link is followed if it belongs to root or the caller,
//   - a file is used if it belongs to root, the caller or the owner of the directory (Owner
//     says who else), and has no second name, which may be in a directory of another user,
//   - a directory is gone through by root under the same condition, members of a group that
//     alone may write there included. Other users name what they trust.
//
// So root may be told to write to a home, as by sudo in one, and to a directory of a group;
// but in /tmp only to what is root's. Whoever owns a directory decides what becomes of the
// files there: the rule protects from all others, and does not hold names still. An os.Root
// would, but opens each directory for reading, and on the way there may be one that the
// caller can only search.
//
// It does not rely on the kernel's own protection (protected_symlinks and the others in
// proc_sys_fs(5)), which may be off. On Windows, where users do not share directories so,
// it looks for links at the end of a path only.
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

// Owner says whose a file may be in a directory that others than root and the caller may
// write to. In any other directory nobody can have planted it.
type Owner int

const (
	// Trusted are the caller, root, and the owner of the directory.
	Trusted Owner = iota
	// Members are those, and whoever is of the group of a directory that a group may write to.
	Members
	// Anybody is whoever may write to the directory.
	Anybody
)

// Error is why a file is refused.
type Error struct {
	Path, Why string
	passes    bool // somebody may be at work on the file just now
}

func (e *Error) Error() string { return e.Path + " " + e.Why }

// A name may change while it is looked at, since others replace files, too: what is found
// then is looked at again, so often.
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

// Open opens a regular file that is there, for reading or writing. It follows no link at
// the end of path, and before it those that the package says. A file with two names (hard
// links) is refused; with Trusted not in a closed directory.
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
	if err := kind(path, found); err != nil { // before it is opened: that could wait, or do something
		return nil, err
	}
	f, err := os.OpenFile(at, flag&^(os.O_CREATE|os.O_TRUNC)|noFollow|syscall.O_NONBLOCK, 0) //nolint:gosec // the user names it; check looks at what was opened
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

// check refuses what was opened unless it has that name now, and may be used.
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

// kind refuses what is not a regular file.
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

// Dir returns the directory of a file, without links: the package says which are followed.
func Dir(path string) (string, error) {
	dir, _, err := followed(path)
	return dir, err
}

func followed(path string) (dir, base string, err error) { return walk(path, false) }

// Named returns the name without links of the file that a path names, also if its end is
// a link. It need not exist; what exists is refused unless it may be used. Files that the
// process has open (IsStream) are left as they are.
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

// mayUse refuses a file that another user may have planted in a directory.
func mayUse(path string, file, in fs.FileInfo, owner Owner) error {
	if n := names(file); n > 1 && file.Mode().IsRegular() && (owner != Trusted || !closed(in)) {
		return &Error{Path: path, passes: true, Why: fmt.Sprintf("has %d names (hard links), and one of them may be another user's: find -inum tells, remove the other", n)}
	}
	if !mayOwn(file, in, owner) {
		return &Error{Path: path, Why: "belongs to " + ownerName(file) + ", in a directory that others may write to: name a file of your own"}
	}
	return nil
}

// IsStream reports whether a path names an open file of a process. Replacing it would not
// replace the file behind it.
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

const mostLinks = 40 // as on Linux

// walk returns the directory of a path, without links, and the name in it. to the end: a
// link there is followed, too, and nothing need have the name.
func walk(path string, toTheEnd bool) (dir, base string, err error) {
	dir, rest := split(path)
	for links := 0; len(rest) > 0; {
		name, last := rest[0], len(rest) == 1
		if last && !toTheEnd {
			return filepath.Join(dir, "."), name, nil
		}
		rest = rest[1:]
		next := filepath.Join(dir, name) // dir has no links, so .. is what it seems
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

// split returns where a path begins, and the names in it.
func split(path string) (begin string, parts []string) {
	begin = filepath.VolumeName(path)
	parts = strings.Split(filepath.ToSlash(path[len(begin):]), "/")
	if parts[0] == "" && len(parts) > 1 {
		begin += string(filepath.Separator)
	}
	return begin, parts
}

// step looks at what stands in a directory on the way. to is where it leads if it is a
// link; empty: it is none.
func step(dir, next string) (to string, err error) {
	info, err := os.Lstat(next)
	if err != nil {
		return "", err
	}
	link := info.Mode()&fs.ModeSymlink != 0
	if link && strings.HasPrefix(next, "/proc/") { // the kernel's (proc_pid_root(5)): nobody plants one, and what it reads is not where it leads
		return "", nil
	}
	in, err := os.Stat(filepath.Join(dir, ".")) // below /proc it may be a link
	switch {
	case err != nil:
		return "", err
	case info.IsDir() && !mayPass(info, in):
		return "", &Error{Path: next, Why: "is a directory of " + ownerName(info) + ", in one that others may write to: name a file in a directory of your own"}
	case !link:
		return "", nil
	case names(info) == 0: // another has just taken its place
		return "", changed(next)
	case !mayLead(info, in):
		return "", &Error{Path: next, Why: "is a symbolic link of " + ownerName(info) + ", in a directory that others may write to: name what it points to, if that is meant"}
	}
	return os.Readlink(next)
}
