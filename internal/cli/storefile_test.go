//go:build unix

package cli_test

import (
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestMachineStoreNamedByFlagIsSharedBetweenUsers(t *testing.T) {
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

func TestErrorOfLocalStoreNamesItsFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	env, file := bare(dir), filepath.Join(dir, "locks.db")
	if err := newStoreFile(file); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"get", "k"}, {"break", "k"}} {
		_, stderr, code := said(t, env, append(args, "--file", file)...)
		if code != 1 || !strings.Contains(stderr, " in ~/locks.db") || strings.Contains(stderr, "table") {
			t.Errorf("%v: exit code %d: %s", args, code, stderr)
		}
	}
}

func TestTruncatedStoreFileIsRejected(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	env, file := bare(dir), filepath.Join(dir, "locks.db")
	if _, stderr, code := said(t, env, "acquire", "k", "--file", file); code != 0 {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	if err := os.Truncate(file, 0); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"acquire", "k", "-n"}, {"get", "k"}, {"ls"}, {"run", "k", "--file", file, "--", "true"}} {
		if !slices.Contains(args, "--file") {
			args = append(args, "--file", file)
		}
		_, stderr, code := said(t, env, args...)
		if code == 0 || !strings.Contains(stderr, "is no longer a store: the file is empty") || !strings.Contains(stderr, "put back a copy") {
			t.Errorf("%v: exit code %d: %s", args, code, stderr)
		}
	}
	if info, err := os.Stat(file); err != nil || info.Size() != 0 {
		t.Errorf("written to: %v, %v", info, err)
	}
}

func TestLocalServerChecksFileBeforeListening(t *testing.T) {
	t.Parallel()
	taken, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	dir := t.TempDir()
	notes, good := filepath.Join(dir, "notes.txt"), filepath.Join(dir, "locks.db")
	if err := os.WriteFile(notes, []byte(strings.Repeat("not a database ", 1000)), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := newStoreFile(good); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{
		dir:                               " is a directory: name a file in it",
		notes:                             " is not a leasehold store",
		filepath.Join(dir, "no", "where"): "no such directory: ",
		good:                              taken.Addr().String() + " is in use: choose another address",
	} {
		_, stderr, code := said(t, bare(dir), "local", "--addr", taken.Addr().String(), "--file", file)
		if code != 2 || !strings.Contains(stderr, want) {
			t.Errorf("--file %s: exit code %d: %s", file, code, stderr)
		}
	}
}
