//go:build unix

package cli_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestTheMachinesStoreIsForAllItsUsersThoughItIsNamed(t *testing.T) {
	t.Parallel()
	dir, machine := t.TempDir(), t.TempDir()
	if err := os.Chmod(machine, 0o777|os.ModeSticky); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(machine, "locks.db")
	_, stderr, code := said(t, append(bare(dir), "TEST_MACHINE_DIR="+machine), "acquire", "k", "--file", file)
	if code != 0 || !strings.Contains(stderr, "made a new store "+file) {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	info, err := os.Stat(file)
	if err != nil || info.Mode().Perm() != 0o666 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
}

func TestAnErrorOfALocalStoreNamesItsFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	env, file := bare(dir), filepath.Join(dir, "locks.db")
	if err := newStoreFile(file); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"get", "k"}, {"get", "k", "--raw"}, {"break", "k"}, {"semaphore", "resize", "k", "3"}} {
		_, stderr, code := said(t, env, append(args, "--file", file)...)
		if code != 1 || !strings.Contains(stderr, " in ~/locks.db") || strings.Contains(stderr, "table") {
			t.Errorf("%v: exit code %d: %s", args, code, stderr)
		}
	}
}

func TestWithVItIsSaidThatNoObservationsAreKept(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "locks.db")
	homeless := slices.DeleteFunc(bare(t.TempDir()), func(v string) bool { return strings.HasPrefix(v, "HOME=") })
	for _, c := range []struct {
		args []string
		says int
	}{{[]string{"-v"}, 1}, {nil, 0}} {
		_, stderr, code := said(t, homeless, append([]string{"run", "-n", "k", "--file", file}, append(c.args, "--", "true")...)...)
		if n := strings.Count(stderr, "observations are not kept, as neither HOME nor XDG_STATE_HOME is set"); code != 0 || n != c.says {
			t.Errorf("%v: exit code %d: %s", c.args, code, stderr)
		}
	}
}
