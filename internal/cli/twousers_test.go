//go:build unix

package cli_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/leasehold-go/leasehold/internal/cli/watchdog"
)

// nobody is a user without any files, and without an entry in /etc/passwd.
const nobody = 54321

func TestMachineStoreIsSharedByTwoUsers(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can run a process of another user")
	}
	dir := t.TempDir()
	for _, d := range []string{dir, filepath.Dir(dir)} { // the other user must be able to reach the directory
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	machine, home := filepath.Join(dir, "machine"), filepath.Join(dir, "home")
	for _, d := range []string{machine, home} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(d, 0o777|os.ModeSticky); err != nil {
			t.Fatal(err)
		}
	}
	leasehold := readable(t, dir)
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
	// The file belongs to the other user. Root must use this file as it is.
	if said, code := as(nobody, "acquire", "k", "-f", "grant"); code != 0 || !strings.Contains(said, "machine/locks.db, locks for this machine only") {
		t.Fatalf("exit code %d: %s", code, said)
	}
	if said, code := as(0, "acquire", "-n", "k"); code != 1 {
		t.Errorf("root: exit code %d: %s", code, said)
	}
	if said, code := as(nobody+1, "acquire", "-n", "k"); code != 1 {
		t.Errorf("a third user: exit code %d: %s", code, said)
	}

	// The user has lost the permission to write to the store. The command must report that,
	// and must not silently use another store.
	if err := os.Chmod(filepath.Join(machine, "locks.db"), 0o644); err != nil {
		t.Fatal(err)
	}
	said, code := as(nobody+1, "acquire", "-n", "k")
	if code != 2 || !strings.Contains(said, "user 54322 cannot use this machine's store: ") || !strings.Contains(said, "permission denied") {
		t.Errorf("without permission: exit code %d: %s", code, said)
	}
	if _, err := os.Stat(filepath.Join(home, ".local", "state", "leasehold", "locks.db")); err == nil {
		t.Error("a store of the user's own was made")
	}
}

func TestRootDoesNotCreateStoreInHomeOfAnotherUser(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can run a process with another user's home")
	}
	home := t.TempDir()
	if err := os.Chown(home, nobody, nobody); err != nil {
		t.Fatal(err)
	}
	for _, env := range [][]string{bare(home), append(bare(t.TempDir()), "XDG_STATE_HOME="+filepath.Join(home, "state"))} {
		p := start(t, home, env, "run", "k", "--", "touch", "ran")
		p.ends(125)
		p.said("no table, and the home of root here belongs to user 54321 (")
	}
	if left, err := os.ReadDir(home); err != nil || len(left) > 0 {
		t.Errorf("there is %v, %v", left, err)
	}
	start(t, home, bare(home), "run", "--file", "own.db", "k", "--", "true").ends(0)
}

// Without this check, any user who may start the set-UID program leasehold could run any
// program with the rights of the file's owner.
func TestSetUIDProgramRefusesEveryCommand(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can lend its rights")
	}
	dir := t.TempDir()
	for _, d := range []string{dir, filepath.Dir(dir)} {
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	leasehold := readable(t, dir)
	if err := os.Chmod(leasehold, 0o755|os.ModeSetuid); err != nil {
		t.Fatal(err)
	}
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

// readable copies the command to a place where every user can run it.
func readable(t *testing.T, dir string) string {
	t.Helper()
	from, err := exec.LookPath("leasehold")
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	to := filepath.Join(dir, "leasehold")
	if err := os.WriteFile(to, b, 0o755); err != nil {
		t.Fatal(err)
	}
	return to
}
