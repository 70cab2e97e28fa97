//go:build unix

package cli_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/leasehold-go/leasehold/internal/cli/watchdog"
	"github.com/leasehold-go/leasehold/internal/lab"
)

// nobody is the id of a user without files and without an entry in /etc/passwd.
const nobody = 54321

func TestMachineStoreIsSharedByTwoUsers(t *testing.T) {
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
	// The store file belongs to the user nobody, who runs the command first. Root must use
	// this file and not change its owner.
	if said, code := as(nobody, "acquire", "k", "-f", "grant"); code != 0 || !strings.Contains(said, "machine/locks.db, locks for this machine only") {
		t.Fatalf("exit code %d: %s", code, said)
	}
	for _, uid := range []uint32{0, nobody + 1} {
		if said, code := as(uid, "acquire", "-n", "k"); code != 1 {
			t.Errorf("user %d: exit code %d: %s", uid, code, said)
		}
	}

	// Now only the owner may write to the store file. For other users the command must
	// report that, and must not silently use another store.
	lab.OK(t, os.Chmod(filepath.Join(machine, "locks.db"), 0o644))
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
	lab.OK(t, os.Chown(home, nobody, nobody))
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

// leasehold must not run with the set-UID bit. Otherwise any user could let it run any
// program with the rights of the owner of leasehold's file.
func TestSetUIDProgramRefusesEveryCommand(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can lend its rights")
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
	lab.OK(t, os.WriteFile(to, lab.Must(os.ReadFile(lab.Must(exec.LookPath("leasehold"))(t)))(t), 0o755))
	return to
}
