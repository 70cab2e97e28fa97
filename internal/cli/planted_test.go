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
	"time"

	"github.com/leasehold-go/leasehold/internal/cli/watchdog"
	"github.com/leasehold-go/leasehold/internal/lab"
)

// planting contains the directories for the test of an attack. Another user of the machine puts
// files and links into them, and then root runs the command.
type planting struct {
	t         *testing.T
	dir       string // directory of the store that all users of the machine share
	home      string // home directory of root
	elsewhere string // a directory that only root may write to
	leasehold string // path of the program leasehold
	env       []string
}

// newPlanting creates the directories. The directory for the store that all users share
// gets the given mode and group.
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
	lab.Output(p.t, cmd)
}

// The method "root" runs leasehold as the user root, in that user's home directory. The command
// must fail with the given message. If the message is empty, the command must succeed.
func (p planting) root(message string, args ...string) {
	p.t.Helper()
	cmd := exec.Command(p.leasehold, args...)
	cmd.Dir, cmd.Env = p.home, append(append(bare(p.home), "TEST_MACHINE_DIR="+p.dir), p.env...)
	out, err := cmd.CombinedOutput()
	if (err == nil) != (message == "") || !strings.Contains(string(out), message) {
		p.t.Errorf("%q: %v, want %q in\n%s", args, err, message, out)
	}
}

func TestLeaseholdAsRootRejectsStoreFilePlantedByOtherUser(t *testing.T) {
	t.Parallel()
	type variant struct{ plant, says string }
	lab.ParallelVariants(t, map[string]variant{
		"dangling symlink":        {`ln -s "$ELSEWHERE/made" locks.db`, "is a symbolic link"},
		"symlink to store":        {`ln -s "$ELSEWHERE/other.db" locks.db`, "is a symbolic link"},
		"hard link to store":      {`ln "$ELSEWHERE/other.db" locks.db`, "has 2 names (hard links)"},
		"FIFO":                    {`mkfifo locks.db`, "is not a regular file"},
		"symlink through symlink": {`leasehold() { :; }; ln -s "$ELSEWHERE" sub; ln -s sub/made locks.db`, "is a symbolic link"},
	}, func(t *testing.T, c variant) {
		p := newPlanting(t, 0o770|os.ModeSetgid, nobody)
		other := filepath.Join(p.elsewhere, "other.db") // a store of root
		lab.OK(t, newStoreFile(other))
		before := lab.Must(os.ReadFile(other))(t)
		if strings.Contains(c.plant, `ln "`) { // root makes the hard link, because the kernel may not let the other user make it (fs.protected_hardlinks)
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
		lab.Want(t, "content of the other store", string(lab.Must(os.ReadFile(other))(t)), string(before))
		lab.Want(t, "files elsewhere", len(lab.Must(os.ReadDir(p.elsewhere))(t)), 1)
	})
}

// A user may have the permission to search a directory (x) but not to read it (r). The
// command must be able to open a store in such a directory. So leasehold cannot use
// os.Root, which opens the directory for reading.
func TestStoreFileInDirectoryWithoutReadPermissionCanBeOpened(t *testing.T) {
	t.Parallel()
	p := newPlanting(t, 0o711, 0)
	drop := filepath.Join(p.dir, "drop")
	lab.OK(t, errors.Join(os.Mkdir(drop, 0o733), os.Chmod(drop, 0o733)))
	p.sh(`"` + p.leasehold + `" run k --file drop/locks.db -- test -s drop/locks.db`)
}

// As root, leasehold must not use another user's file, because that user can read and change the
// content. It must not follow another user's symlink either.
func TestLeaseholdAsRootUsesNoFileOrSymlinkPlantedByOtherUser(t *testing.T) {
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
	lab.Want(t, "files elsewhere", len(lab.Must(os.ReadDir(p.elsewhere))(t)), 0)
	p.sh(`[ ! -s events ] && [ ! -s grant ] && [ ! -s k.prom ] && [ -z "$(ls -A dir)" ]`)
}

// inDir returns args with dir joined to the file name. The file name is the last argument
// before --, or the last argument if there is no --.
func inDir(dir string, args []string) []string {
	args = slices.Clone(args)
	last := slices.Index(args, "--") - 1
	if last < 0 {
		last = len(args) - 1
	}
	args[last] = filepath.Join(dir, args[last])
	return args
}

func TestLeaseholdAsRootCanWriteToFilesNamedOnCommandLine(t *testing.T) {
	t.Parallel()
	p := newPlanting(t, 0o777|os.ModeSticky, 0)
	// Root may write to a file that the command line names, even in another user's home
	// directory. This other user may have started leasehold with sudo.
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
		lab.Output(t, cmd)
	}
}

// nobody is the id of a user without files and without an entry in /etc/passwd.
const nobody = 54321

func TestUsersOfMachineShareDefaultStore(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can run a process of another user")
	}
	dir := t.TempDir()
	leasehold := readable(t, dir)
	machine, home := filepath.Join(dir, "machine"), filepath.Join(dir, "home")
	for _, d := range []string{machine, home} {
		lab.OK(t, errors.Join(os.Mkdir(d, 0o755), os.Chmod(d, 0o777|os.ModeSticky)))
	}
	as := func(uid uint32, args ...string) (stderr string, code int) {
		t.Helper()
		var said strings.Builder
		cmd := exec.Command(leasehold, args...)
		cmd.Dir, cmd.Stderr = home, &said
		cmd.Env = append(bare(home), "TEST_MACHINE_DIR="+machine)
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
		code = exitCode(cmd.Run())
		return said.String(), code
	}
	// The user with the id 54321, the constant "nobody", is the first to run the command, so the
	// store file belongs to that user. Root and a third user must use the same file.
	if said, code := as(nobody, "acquire", "k", "-f", "grant"); code != 0 || !strings.Contains(said, "machine/locks.db, locks for this machine only") {
		t.Fatalf("exit code %d: %s", code, said)
	}
	for _, uid := range []uint32{0, nobody + 1} {
		if said, code := as(uid, "acquire", "-n", "k"); code != 1 {
			t.Errorf("user %d: exit code %d: %s", uid, code, said)
		}
		if said, code := as(uid, "local", "--file", "../machine/locks.db", "--", "true"); code != 0 {
			t.Errorf("user %d serves the store by a relative path: exit code %d: %s", uid, code, said)
		}
	}

	// Now only the owner may write to the store file. For any other user, the command must report
	// the missing permission, and must not silently use another store.
	lab.OK(t, os.Chmod(filepath.Join(machine, "locks.db"), 0o644))
	said, code := as(nobody+1, "acquire", "-n", "k")
	lab.Want(t, "exit code without permission", code, 2)
	lab.WantParts(t, "stderr", said, "user 54322 cannot use this machine's store: ", "permission denied")
	lab.WantNoFile(t, "store of the user's own", filepath.Join(home, ".local", "state", "leasehold", "locks.db"))
}

func TestLeaseholdAsRootCreatesNoStoreInHomeOfOtherUser(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can run a process with another user's home")
	}
	home := t.TempDir()
	lab.OK(t, os.Chown(home, nobody, nobody))
	for _, env := range [][]string{bare(home), append(bare(t.TempDir()), "XDG_STATE_HOME="+filepath.Join(home, "state"))} {
		p := start(t, home, env, "run", "k", "--", "touch", "ran").ends(125)
		p.said("no table, and the home of root here belongs to user 54321 (")
	}
	lab.Want(t, "files in the home", len(lab.Must(os.ReadDir(home))(t)), 0)
	start(t, home, bare(home), "run", "--file", "own.db", "k", "--", "true").ends(0)
}

// leasehold must not run with the set-UID bit. Otherwise any user could run any program
// with the rights of the owner of leasehold's file.
func TestLeaseholdWithSetUIDBitRejectsEveryCommand(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can give a program the rights of root")
	}
	dir := t.TempDir()
	leasehold := readable(t, dir)
	lab.OK(t, os.Chmod(leasehold, 0o755|os.ModeSetuid))
	for _, args := range [][]string{
		{"leasehold", "run", "k", "--", "id", "-u"}, {"leasehold", "version"}, {"leasehold", "gate", "--", "0", "/usr/bin/id", "id", "-u"},
		watchdog.Args(syscall.SIGTERM, time.Second, watchdog.Descent{}),
	} {
		cmd := &exec.Cmd{Path: leasehold, Args: args, Dir: dir, Env: bare(dir), Stdin: strings.NewReader("g")}
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
		out, err := cmd.CombinedOutput()
		if code := exitCode(err); code != 125 || !strings.HasPrefix(string(out), "leasehold: it was started with the rights of another user") {
			t.Errorf("%q: exit code %d: %s", args, code, out)
		}
	}
}

// readable copies the program leasehold to dir, makes dir accessible to every user, and
// returns the path of the copy.
func readable(t *testing.T, dir string) string {
	t.Helper()
	lab.OK(t, errors.Join(os.Chmod(dir, 0o755), os.Chmod(filepath.Dir(dir), 0o755)))
	to := filepath.Join(dir, "leasehold")
	// Let cp write the copy, so that this process never opens it for writing. Otherwise a child
	// that another test starts could inherit the descriptor, and keep it until its execve(2). Until
	// then, the kernel would refuse to execute the copy (ETXTBSY).
	lab.OK(t, exec.Command("cp", lab.Must(exec.LookPath("leasehold"))(t), to).Run())
	lab.OK(t, os.Chmod(to, 0o755))
	return to
}
