//go:build unix

package cli_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"github.com/leasehold-go/leasehold/internal/lab"
)

// storeFile makes a local store below a new directory. It returns the directory and the
// path of the store file.
func storeFile(t *testing.T) (dir, file string) {
	t.Helper()
	dir = t.TempDir()
	file = filepath.Join(dir, "store", "locks.db")
	lab.OK(t, newStoreFile(file))
	return dir, file
}

// busyFile makes a local store and locks the store file, as another process would. The result
// "unlock" is a function that unlocks the file.
func busyFile(t *testing.T) (dir, file string, unlock func()) {
	t.Helper()
	dir, file = storeFile(t)
	f := lab.Must(os.OpenFile(file, os.O_RDWR, 0))(t)
	lab.OK(t, syscall.Flock(int(f.Fd()), syscall.LOCK_EX))
	unlock = sync.OnceFunc(func() { _ = f.Close() })
	t.Cleanup(unlock)
	return dir, file, unlock
}

// margin is the time by which a command may exceed its time limit on a busy test machine.
const margin = 8 * time.Second

func TestCommandTimesOutIfStoreFileStaysLocked(t *testing.T) {
	t.Parallel()
	type variant struct {
		args        []string
		code        int
		least, most time.Duration
	}
	lab.ParallelVariants(t, map[string]variant{
		"run -w":     {[]string{"run", "-w", "1s", "k", "--", "touch", "ran"}, 125, time.Second, time.Second},
		"acquire -w": {[]string{"acquire", "-w", "1s", "k"}, 2, time.Second, time.Second},
		"run -n":     {[]string{"run", "-n", "k", "--", "touch", "ran"}, 125, 0, 10 * time.Second},
		"ls":         {[]string{"ls"}, 2, 0, 10 * time.Second},
		"break":      {[]string{"break", "k", "--token", "1", "--yes"}, 2, 0, 10 * time.Second},
	}, func(t *testing.T, c variant) {
		dir, file, _ := busyFile(t)
		began := time.Now()
		stdout, stderr, code := said(t, append(bare(dir), "LEASEHOLD_FILE="+file), c.args...)
		took := time.Since(began)
		if code != c.code || stdout != "" || took < c.least || took > c.most+margin {
			t.Errorf("exit code %d after %v: %s%s", code, took, stdout, stderr)
		}
		lab.WantParts(t, "stderr", stderr, "locks.db was busy for ", "another process keeps it locked: end that process")
		lab.WantNoFile(t, "file that CMD writes", filepath.Join(dir, "ran"))
	})
}

func TestCommandWaitsUntilStoreFileIsUnlocked(t *testing.T) {
	t.Parallel()
	waits := map[string][]string{"no limit": nil, "-w": {"-w", "25s"}}
	lab.ParallelVariants(t, waits, func(t *testing.T, wait []string) {
		dir, file, unlock := busyFile(t)
		p := start(t, dir, bare(dir), append(append([]string{"run", "--file", file}, wait...), "k", "--", "true")...)
		eventually(t, "the message still trying", func() bool { return strings.Contains(p.stderr.String(), "still trying") })
		unlock()
		p.ends(0)
	})
}

func TestSIGTERMInterruptsWaitForLockedStoreFile(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"run", "k", "--", "true"}, {"ls"}} {
		dir, file, _ := busyFile(t)
		p := start(t, dir, append(bare(dir), "LEASEHOLD_FILE="+file), args...)
		eventually(t, "the message still trying", func() bool { return strings.Contains(p.stderr.String(), "still trying") })
		p.signal(syscall.SIGTERM)
		if code := p.wait(); code != -1 && code != 128+int(syscall.SIGTERM) {
			t.Errorf("%v: exit code %d: %s", args, code, &p.stderr)
		}
	}
}

// This test runs 40 processes at the same time. The test in proof/robustness/processes runs
// 300 processes.
func TestConcurrentProcessesCanUseOneStoreFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "locks.db")
	var crowd []*process
	for range 40 {
		crowd = append(crowd, start(t, dir, bare(dir), "run", "--file", file, "-n", "k", "--", "sh", "-c", "echo >>ran"))
	}
	granted := 0
	for _, p := range crowd {
		switch code := p.wait(); code {
		case 0:
			granted++
		case 75:
		default:
			t.Errorf("exit code %d: %s", code, &p.stderr)
		}
	}
	lab.WantRange(t, "processes that were granted the key", granted, 1, len(crowd))
	lab.Want(t, "times that CMD ran", len(lab.Must(os.ReadFile(filepath.Join(dir, "ran")))(t)), granted)
}

func TestWaitingRunFailsImmediatelyIfStoreBecomesUnusable(t *testing.T) {
	t.Parallel()
	replaced := func(content string) func(*testing.T, string) {
		return func(t *testing.T, file string) {
			t.Helper()
			made := file + ".new"
			lab.OK(t, os.WriteFile(made, []byte(content), 0o600))
			lab.OK(t, os.Rename(made, file))
		}
	}
	type variant struct {
		fault func(t *testing.T, file string)
		says  string
	}
	lab.ParallelVariants(t, map[string]variant{
		"other content": {replaced(strings.Repeat("not a database ", 1000)), "invalid database"},
		"empty":         {replaced(""), "the file is empty, and a store never is: "},
		"no file":       {func(t *testing.T, file string) { lab.OK(t, os.Remove(file)) }, "the file was removed or replaced"},
		"truncated file": {func(t *testing.T, file string) {
			b := lab.Must(os.ReadFile(file))(t)
			replaced(string(b[:len(b)/4]))(t, file)
		}, "is damaged: end what uses it"},
		"symbolic link": {func(t *testing.T, file string) {
			lab.OK(t, os.Rename(file, file+".away"))
			lab.OK(t, os.Symlink(file+".away", file))
		}, "is a symbolic link"},
		"no directory": {func(t *testing.T, file string) {
			lab.OK(t, os.Rename(filepath.Dir(file), filepath.Dir(file)+".away"))
		}, "no such file or directory"},
		"damaged item": {damageItem, "a stored item cannot be read: the file is damaged"},
	}, func(t *testing.T, c variant) {
		dir, file := storeFile(t)
		env := append(bare(dir), "LEASEHOLD_FILE="+file)
		start(t, dir, env, "acquire", "-l", "1h", "k").ends(0)
		p := start(t, dir, env, "run", "k", "--", "touch", "ran")
		eventually(t, "the wait for k", func() bool { return strings.Contains(p.stderr.String(), "waiting for k") })
		c.fault(t, file)
		p.ends(125)
		p.said(c.says)
		lab.WantNoPart(t, "stderr", p.stderr.String(), "still trying", "fuser")
	})
}

// damageItem truncates the stored item of the lock in the local store file, so that no
// command can decode it.
func damageItem(t *testing.T, file string) {
	t.Helper()
	db := lab.Must(bbolt.Open(file, 0o600, &bbolt.Options{Timeout: patience}))(t)
	damaged := 0
	var visit func(*bbolt.Bucket) error
	visit = func(b *bbolt.Bucket) error {
		return b.ForEach(func(name, content []byte) error {
			switch {
			case content == nil:
				return visit(b.Bucket(name))
			case bytes.Contains(content, []byte("ownerName")):
				damaged++
				return b.Put(name, content[:len(content)/2])
			}
			return nil
		})
	}
	err := db.Update(func(tx *bbolt.Tx) error {
		return tx.ForEach(func(_ []byte, b *bbolt.Bucket) error { return visit(b) })
	})
	if err := errors.Join(err, db.Close()); err != nil || damaged != 1 {
		t.Fatalf("%d items: %v", damaged, err)
	}
}
