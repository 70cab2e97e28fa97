//go:build unix

package cli_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/leasehold-go/leasehold/internal/lab"
)

// planting is a set of directories for an attack test: another user of the machine puts
// files and links there, before root runs the command.
type planting struct {
	t         *testing.T
	dir       string // directory of the store that all users of the machine share
	home      string // home directory of root
	elsewhere string // a directory that only root may write to
	leasehold string // path of the program leasehold
	env       []string
}

// newPlanting creates the directories. The directory of the machine's store has the given
// mode and group.
func newPlanting(t *testing.T, mode os.FileMode, group int) planting {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("only root can run a process of another user")
	}
	top := t.TempDir()
	p := planting{t, filepath.Join(top, "machine"), filepath.Join(top, "root"), filepath.Join(top, "elsewhere"), readable(t, top), nil}
	for d, mode := range map[string]os.FileMode{p.dir: mode, p.home: 0o700, p.elsewhere: 0o755} {
		lab.OK(t, os.MkdirAll(d, 0o700))
		if d == p.dir {
			lab.OK(t, os.Chown(d, 0, group))
		}
		lab.OK(t, os.Chmod(d, mode)) // Chmod sets the mode exactly: unlike MkdirAll, it ignores the umask
	}
	return p
}

// sh runs a shell script in the store's directory, as the user who attacks root.
func (p planting) sh(script string) {
	p.t.Helper()
	cmd := exec.Command("/bin/sh", "-ec", script)
	cmd.Dir, cmd.Env = p.dir, []string{"PATH=" + os.Getenv("PATH"), "ELSEWHERE=" + p.elsewhere}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	if out, err := cmd.CombinedOutput(); err != nil {
		p.t.Fatalf("%s: %v\n%s", script, err, out)
	}
}

// root runs the command as root in root's home directory. The command must fail with the
// message in says or, if says is "", succeed.
func (p planting) root(says string, args ...string) {
	p.t.Helper()
	cmd := exec.Command(p.leasehold, args...)
	cmd.Dir, cmd.Env = p.home, append(append(bare(p.home), "TEST_MACHINE_DIR="+p.dir), p.env...)
	out, err := cmd.CombinedOutput()
	if (err == nil) != (says == "") || !strings.Contains(string(out), says) {
		p.t.Errorf("%q: %v, want %q in\n%s", args, err, says, out)
	}
}

// untouched fails the test if root has written to the directory p.elsewhere.
func (p planting) untouched() {
	p.t.Helper()
	if files, err := os.ReadDir(p.elsewhere); err != nil || len(files) != 0 {
		p.t.Errorf("elsewhere there are %v, %v", files, err)
	}
}

// storeElsewhere creates a local store that belongs to root in the directory p.elsewhere,
// and returns its path.
func (p planting) storeElsewhere() string {
	p.t.Helper()
	file := filepath.Join(p.elsewhere, "other.db")
	lab.OK(p.t, newStoreFile(file))
	return file
}

func TestMemberOfStoreGroupCannotRedirectRootToAnotherStore(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ plant, says string }{
		"a link to nothing":     {`ln -s "$ELSEWHERE/made" locks.db`, "is a symbolic link"},
		"a link to a store":     {`ln -s "$ELSEWHERE/other.db" locks.db`, "is a symbolic link"},
		"another name of one":   {`ln "$ELSEWHERE/other.db" locks.db`, "has 2 names (hard links)"},
		"a FIFO":                {`mkfifo locks.db`, "is not a regular file"},
		"a link in place of it": {`leasehold() { :; }; ln -s "$ELSEWHERE" sub; ln -s sub/made locks.db`, "is a symbolic link"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPlanting(t, 0o770|os.ModeSetgid, nobody)
			other := p.storeElsewhere()
			before := lab.Must(os.ReadFile(other))(t)
			if strings.Contains(c.plant, `ln "`) { // root makes the hard link, because the kernel may forbid it to the other user (fs.protected_hardlinks)
				lab.OK(t, os.Link(other, filepath.Join(p.dir, "locks.db")))
			} else {
				p.sh(c.plant)
			}
			for _, args := range [][]string{
				{"run", "k", "--", "true"}, {"acquire", "k"}, {"ls"}, {"doctor"}, {"table", "create"},
				{"run", "k", "--file", filepath.Join(p.dir, "locks.db"), "--", "true"},
			} {
				p.root(c.says, args...)
			}
			after, err := os.ReadFile(other)
			if err != nil || string(after) != string(before) {
				t.Errorf("the other store was written to, %v", err)
			}
			if files, err := os.ReadDir(p.elsewhere); err != nil || len(files) != 1 {
				t.Errorf("elsewhere there are %v, %v", files, err)
			}
		})
	}
}

func TestSymlinkInPathIsFollowedIfOwnedByRootOrCaller(t *testing.T) {
	t.Parallel()
	p := newPlanting(t, 0o777|os.ModeSticky, 0)
	p.sh(`ln -s "$ELSEWHERE" theirs; mkdir their-own; chmod 777 their-own`)
	lab.OK(t, errors.Join(os.Mkdir(filepath.Join(p.dir, "real"), 0o755), os.Symlink("real", filepath.Join(p.dir, "ours"))))
	for file, says := range map[string]string{
		"theirs/locks.db": "theirs is a symbolic link of user 54321", "their-own/locks.db": "their-own is a directory of user 54321",
	} {
		p.root(says, "run", "k", "--file", p.dir+"/"+file, "--", "true")
	}
	p.untouched()
	p.root("", "run", "k", "--file", p.dir+"/ours/locks.db", "--", "true")
}

// A directory may give a user the permission to search it (x) but not to read it (r). The
// command cannot use os.Root there, because os.Root opens the directory for reading.
func TestStoreInUnreadableDirectoryCanBeOpened(t *testing.T) {
	t.Parallel()
	p := newPlanting(t, 0o711, 0)
	drop := filepath.Join(p.dir, "drop")
	lab.OK(t, errors.Join(os.Mkdir(drop, 0o733), os.Chmod(drop, 0o733)))
	p.sh(`"` + p.leasehold + `" run k --file drop/locks.db -- test -s drop/locks.db`)
}

// Root must not use another user's file, because its owner can read and change what root
// writes. Root must not follow another user's link either.
func TestRootUsesNoFileOrSymlinkPlantedByOtherUser(t *testing.T) {
	t.Parallel()
	p := newPlanting(t, 0o777|os.ModeSticky, 0)
	p.sh(`touch events grant k.prom; echo 0123456789abcdef0123456789abcdef >token; chmod 600 token; mkdir dir; mkfifo fifo; ln -s /dev/full device
		ln -s "$ELSEWHERE/made" link; ln -s "$ELSEWHERE/made" link.prom`)
	p.env = []string{"LEASEHOLD_FILE=" + filepath.Join(p.home, "locks.db")}
	for _, c := range []struct {
		says string
		args []string
	}{
		{"belongs to user 54321", []string{"acquire", "g", "-f", "grant"}},
		{"belongs to user 54321", []string{"release", "-f", "grant"}},
		{"belongs to user 54321", []string{"renew", "-f", "grant"}},
		{"belongs to user 54321", []string{"run", "e", "--events", "events", "--", "true"}},
		{"belongs to user 54321", []string{"run", "e", "--events", "fifo", "--", "true"}},
		{"belongs to user 54321", []string{"run", "m", "--metrics", "k.prom", "--", "true"}},
		{"belongs to user 54321", []string{"ui", "--addr", "nowhere", "--token-file", "token"}},
		{"device is a symbolic link of user 54321", []string{"acquire", "g", "-f", "device"}},
		{"link is a symbolic link of user 54321", []string{"acquire", "g", "-f", "link"}},
		{"link is a symbolic link of user 54321", []string{"run", "e", "--events", "link", "--", "true"}},
		{"link.prom is a symbolic link of user 54321", []string{"run", "m", "--metrics", "link.prom", "--", "true"}},
		{"is a directory of user 54321", []string{"acquire", "g", "-f", "dir/grant"}},
		{"is a directory of user 54321", []string{"run", "e", "--events", "dir/events", "--", "true"}},
		{"is a directory of user 54321", []string{"run", "m", "--metrics", "dir/k.prom", "--", "true"}},
		{"is a directory of user 54321", []string{"ui", "--addr", "nowhere", "--token-file", "dir/token"}},
	} {
		p.root(c.says, inDir(p.dir, c.args)...)
	}
	p.untouched()
	p.sh(`[ ! -s events ] && [ ! -s grant ] && [ ! -s k.prom ] && [ -z "$(ls -A dir)" ]`)
}

// inDir returns args with dir joined to the file name, which is the last argument before --
// (or the last of all without --).
func inDir(dir string, args []string) []string {
	args = slices.Clone(args)
	last := slices.Index(args, "--") - 1
	if last < 0 {
		last = len(args) - 1
	}
	args[last] = filepath.Join(dir, args[last])
	return args
}

func TestOutputFilesAreWrittenAtPathsGivenByUser(t *testing.T) {
	t.Parallel()
	p := newPlanting(t, 0o777|os.ModeSticky, 0)
	// In another user's home directory, root may write the files that the command line
	// names. This happens when that user runs leasehold with sudo.
	home := filepath.Join(filepath.Dir(p.home), "theirs")
	lab.OK(t, errors.Join(os.Mkdir(home, 0o755), os.Chown(home, nobody, nobody)))
	group := filepath.Join(filepath.Dir(p.home), "group")
	lab.OK(t, errors.Join(os.Mkdir(group, 0o770), os.Chown(group, 0, nobody), os.Chmod(group, 0o770|os.ModeSetgid)))
	for _, script := range []string{
		`leasehold acquire a -f -`, `leasehold acquire b >/dev/null`, `leasehold run d --events /dev/stderr -- true`,
		`leasehold acquire f -f "$DIR/f"; leasehold renew -f "$DIR/f"; leasehold release -f "$DIR/f"`,
		`leasehold run g --events "$DIR/events" --metrics "$DIR/g.prom" -- true; leasehold run g --events "$DIR/events" --metrics "$DIR/g.prom" -- true`,
		`leasehold acquire h -f "$THEIRS/h"; leasehold release -f "$THEIRS/h"`,
		`leasehold acquire i -f "$GROUP/i"; leasehold release -f "$GROUP/i"`,
		`ln -s real link; leasehold acquire j -f link; test -s real; leasehold release -f link; test ! -e real`,
	} {
		cmd := exec.Command("/bin/sh", "-ec", script)
		cmd.Dir = p.home
		cmd.Env = append(bare(p.home), "PATH="+filepath.Dir(p.leasehold)+":"+os.Getenv("PATH"), "LEASEHOLD_FILE="+filepath.Join(p.home, "locks.db"),
			"DIR="+p.dir, "THEIRS="+home, "GROUP="+group)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", script, err, out)
		}
	}
}
