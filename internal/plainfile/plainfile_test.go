//go:build unix

package plainfile_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/internal/plainfile"
)

const stranger = 54321 // id of a user without an entry in /etc/passwd

// place creates two directories: dir with the given mode, and elsewhere with mode 0700. It creates
// a file with the name "file" in each of them. All belong to the current user.
func place(t *testing.T, mode fs.FileMode) (dir, elsewhere string) {
	t.Helper()
	top, err := filepath.EvalSymlinks(t.TempDir())
	do(t, err)
	dir, elsewhere = filepath.Join(top, "dir"), filepath.Join(top, "elsewhere")
	for _, d := range []string{dir, elsewhere} {
		do(t, os.Mkdir(d, 0o700))
		do(t, os.WriteFile(filepath.Join(d, "file"), []byte("x"), 0o600))
	}
	do(t, os.Chmod(dir, mode))
	return dir, elsewhere
}

func do(t *testing.T, errs ...error) {
	t.Helper()
	lab.OK(t, errors.Join(errs...))
}

// ofStranger gives a file to another user, whose id is the constant "stranger". It skips the test
// unless the current user is root, because only root can change the owner of a file.
func ofStranger(t *testing.T, path string) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("only root can make files of another user")
	}
	do(t, os.Lchown(path, stranger, stranger))
}

const (
	sticky = 0o777 | fs.ModeSticky
	group  = 0o770 | fs.ModeSetgid
)

// If err is nil, refusal returns "". Otherwise it returns the reason in the *plainfile.Error.
func refusal(t *testing.T, err error) string {
	t.Helper()
	var refused *plainfile.Error
	if err != nil && !errors.As(err, &refused) {
		t.Fatal(err)
	}
	if err == nil {
		return ""
	}
	return refused.Why
}

func opened(path string, owner plainfile.Owner) error {
	f, err := plainfile.Open(path, os.O_RDWR, owner)
	if err != nil {
		return err
	}
	return f.Close()
}

func named(path string) error {
	_, err := plainfile.Named(path)
	return err
}

// says fails the test unless the reason in err contains want. If want is "", err must be nil.
func says(t *testing.T, what string, err error, want string) {
	t.Helper()
	if got := refusal(t, err); want == "" && got != "" || !strings.Contains(got, want) {
		t.Errorf("%s: %q, want %q", what, got, want)
	}
}

func TestOpenAcceptsOnlyRegularFile(t *testing.T) {
	dir, elsewhere := place(t, 0o700)
	do(t, os.Symlink(filepath.Join(elsewhere, "file"), filepath.Join(dir, "link")),
		os.Mkdir(filepath.Join(dir, "sub"), 0o700), syscall.Mkfifo(filepath.Join(dir, "fifo"), 0o600))
	for name, want := range map[string]string{
		"file": "", "link": "is a symbolic link", "sub": "is a directory", "fifo": "is not a regular file",
	} {
		says(t, name, opened(filepath.Join(dir, name), plainfile.Members), want)
	}
	says(t, "a device", opened("/dev/null", plainfile.Members), "is not a regular file")
	lab.WantErr(t, "opened", opened(filepath.Join(dir, "none"), plainfile.Members), fs.ErrNotExist)
}

func TestOpenRejectsHardLinkInSharedDirectory(t *testing.T) {
	for mode, want := range map[fs.FileMode]string{0o700: "", sticky: "2 names", group: "2 names", 0o777: "2 names"} {
		dir, elsewhere := place(t, mode)
		second := filepath.Join(dir, "second")
		do(t, os.Link(filepath.Join(elsewhere, "file"), second))
		says(t, mode.String(), opened(second, plainfile.Trusted), want)
		says(t, mode.String(), named(second), want)
		says(t, "a store", opened(second, plainfile.Members), "2 names")
	}
}

func TestOpenRejectsFileOfOtherUserInSharedDirectory(t *testing.T) {
	for _, c := range []struct {
		mode                      fs.FileMode
		trusted, members, anybody string
	}{
		{0o755, "", "", ""},
		{group, "belongs to user 54321", "", ""},
		{sticky, "belongs to user 54321", "belongs to user 54321", ""},
		{0o777, "belongs to user 54321", "belongs to user 54321", ""},
	} {
		dir, _ := place(t, c.mode)
		file := filepath.Join(dir, "file")
		says(t, "own file", opened(file, plainfile.Trusted), "")
		ofStranger(t, file)
		says(t, c.mode.String(), opened(file, plainfile.Trusted), c.trusted)
		says(t, c.mode.String(), named(file), c.trusted)
		says(t, c.mode.String(), opened(file, plainfile.Members), c.members)
		says(t, c.mode.String(), opened(file, plainfile.Anybody), c.anybody)
	}
}

func TestOpenAcceptsFileOwnedByOwnerOfSharedDirectory(t *testing.T) {
	dir, _ := place(t, sticky)
	ofStranger(t, dir)
	ofStranger(t, filepath.Join(dir, "file"))
	says(t, "file", opened(filepath.Join(dir, "file"), plainfile.Trusted), "")
	says(t, "file", named(filepath.Join(dir, "file")), "")
}

func TestOpenRejectsSymlinkOfOtherUserInSharedDirectory(t *testing.T) {
	for mode, want := range map[fs.FileMode]string{0o755: "", group: "is a symbolic link of user 54321", sticky: "is a symbolic link of user 54321", 0o777: "is a symbolic link of user 54321"} {
		dir, elsewhere := place(t, mode)
		way, end := filepath.Join(dir, "way"), filepath.Join(dir, "end")
		do(t, os.Symlink(elsewhere, way), os.Symlink(filepath.Join(elsewhere, "file"), end))
		says(t, "own file", opened(filepath.Join(way, "file"), plainfile.Members), "")
		ofStranger(t, way)
		ofStranger(t, end)
		says(t, mode.String(), opened(filepath.Join(way, "file"), plainfile.Members), want)
		says(t, mode.String(), named(filepath.Join(way, "file")), want)
		says(t, mode.String(), named(end), want)
	}
}

// Instead of a symbolic link, an attacker can also plant a directory.
func TestOpenRejectsPathThroughDirectoryOfOtherUser(t *testing.T) {
	const refused = "is a directory of user 54321, in one that others may write to"
	for mode, want := range map[fs.FileMode]string{0o755: "", group: "", sticky: refused, 0o777: refused} {
		dir, _ := place(t, mode)
		sub := filepath.Join(dir, "sub")
		do(t, os.Mkdir(sub, 0o755), os.WriteFile(filepath.Join(sub, "file"), nil, 0o600))
		says(t, "own file", opened(filepath.Join(sub, "file"), plainfile.Members), "")
		ofStranger(t, sub)
		says(t, mode.String(), opened(filepath.Join(sub, "file"), plainfile.Members), want)
		says(t, mode.String(), named(filepath.Join(sub, "new")), want)
	}
}

func TestOpenNeverFollowsSymlinkSwappedInDuringOpen(t *testing.T) {
	dir, elsewhere := place(t, 0o777)
	file, other := filepath.Join(dir, "file"), filepath.Join(elsewhere, "file")
	theirs, err := os.Stat(other)
	do(t, err)
	swapping(t, func(n int) {
		next := filepath.Join(dir, "next")
		if n%2 == 0 {
			_ = os.Symlink(other, next)
		} else {
			_ = os.WriteFile(next, nil, 0o600)
		}
		_ = os.Rename(next, file)
	})
	for range 200 {
		f, err := plainfile.Open(file, os.O_RDWR, plainfile.Members)
		if err != nil {
			continue
		}
		ours, err := f.Stat()
		do(t, err, f.Close())
		if os.SameFile(ours, theirs) {
			t.Fatal("the link was followed")
		}
	}
}

func TestOpenRetriesIfDirectoryIsSwappedDuringOpen(t *testing.T) {
	dir, elsewhere := place(t, 0o777)
	way := filepath.Join(dir, "way")
	do(t, os.Symlink(dir, way))
	swapping(t, func(n int) {
		next := filepath.Join(dir, "next")
		_ = os.Symlink([]string{dir, elsewhere}[n%2], next)
		_ = os.Rename(next, way)
	})
	for range 200 {
		if err := opened(filepath.Join(way, "file"), plainfile.Members); err != nil {
			says(t, "the only refusal", err, "changes all the time")
		}
	}
}

// swapping calls swap repeatedly, in another goroutine, until the test ends.
func swapping(t *testing.T, swap func(n int)) {
	t.Helper()
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for n := 0; ; n++ {
			select {
			case <-stop:
				return
			default:
				swap(n)
			}
		}
	}()
	t.Cleanup(func() { close(stop); <-stopped })
}

func TestSymlinksInPathAreResolved(t *testing.T) {
	dir, elsewhere := place(t, 0o700)
	do(t, os.Symlink(elsewhere, filepath.Join(dir, "way")), os.Symlink("way/new", filepath.Join(dir, "end")),
		os.Symlink("loop", filepath.Join(dir, "loop")), os.Symlink("/dev/stdout", filepath.Join(dir, "out")))
	for path, want := range map[string]string{
		"file": filepath.Join(dir, "file"), "new": filepath.Join(dir, "new"), "end": filepath.Join(elsewhere, "new"),
		"way/../dir/file": filepath.Join(dir, "file"), "way/file": filepath.Join(elsewhere, "file"), "out": "/dev/stdout",
	} {
		if got, err := plainfile.Named(dir + "/" + path); got != want || err != nil {
			t.Errorf("%s: %s, %v", path, got, err)
		}
	}
	says(t, "loop", named(filepath.Join(dir, "loop")), "too many symbolic links")
	lab.WantErr(t, "named", named(filepath.Join(dir, "none", "file")), fs.ErrNotExist)
	for _, stream := range []string{"/dev/stdin", "/dev/stdout", "/dev/stderr", "/dev/fd/0", "/dev/null"} {
		if got, err := plainfile.Named(stream); got != stream || err != nil {
			t.Errorf("%s: %s, %v", stream, got, err)
		}
	}
}

func TestPlaceReturnsErrExistIfTargetExists(t *testing.T) {
	dir, _ := place(t, 0o700)
	temporary := filepath.Join(dir, "temporary")
	do(t, os.WriteFile(temporary, []byte("new"), 0o600))
	lab.WantErr(t, "Place", plainfile.Place(temporary, filepath.Join(dir, "file")), fs.ErrExist)
	do(t, plainfile.Place(temporary, filepath.Join(dir, "free")))
	if b, err := os.ReadFile(filepath.Join(dir, "free")); err != nil || string(b) != "new" {
		t.Errorf("%q, %v", b, err)
	}
	lab.WantErr(t, "Lstat", lab.ErrorOf(os.Lstat(temporary)), fs.ErrNotExist)
}
