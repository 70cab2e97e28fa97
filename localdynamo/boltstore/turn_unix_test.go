//go:build unix

package boltstore_test

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/localdynamo"
	"github.com/leasehold-go/leasehold/localdynamo/boltstore"
)

// locked locks a file as another process would. The lock lasts until unlock is called.
func locked(t *testing.T, path string) (unlock func()) {
	t.Helper()
	f := lab.Must(os.OpenFile(path, os.O_RDWR, 0))(t)
	lab.OK(t, syscall.Flock(int(f.Fd()), syscall.LOCK_EX))
	unlock = sync.OnceFunc(func() { _ = f.Close() })
	t.Cleanup(unlock)
	return unlock
}

func nothing(localdynamo.Tx) error { return nil }

// contextStore is a store with the method WithContext. An engine passes the context of each
// request to this method.
type contextStore interface {
	WithContext(ctx context.Context) localdynamo.Store
}

func TestFunctionOpenContextWaitsForLockedFileUntilContextEnds(t *testing.T) {
	t.Parallel()
	path, _ := newFile(t)
	unlock := locked(t, path)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	began := time.Now()
	err := lab.ErrorOf(boltstore.OpenContext(ctx, path))
	lab.WantErr(t, "OpenContext", err, boltstore.ErrBusy, context.DeadlineExceeded)
	lab.WantText(t, "OpenContext", err, path)
	lab.WantTook(t, "OpenContext waited for", began, 0, 5*time.Second)
	opened := make(chan error)
	go func() { opened <- lab.ErrorOf(boltstore.OpenContext(t.Context(), path)) }()
	unlock()
	lab.OK(t, <-opened)
}

func TestViewReturnsErrBusyIfFileStaysLocked(t *testing.T) {
	t.Parallel()
	path, _ := newFile(t)
	store := lab.Must(boltstore.Open(path, boltstore.WithPatience(50*time.Millisecond)))(t)
	locked(t, path)
	err := store.View(nothing)
	lab.WantErr(t, "View", err, boltstore.ErrBusy)
	lab.WantText(t, "View", err, path)
	lab.WantErr(t, "Open", lab.ErrorOf(boltstore.Open(path, boltstore.WithPatience(50*time.Millisecond))), boltstore.ErrBusy)
}

// When a request stops waiting for the file lock, its goroutine stays blocked in flock(2). The
// next request waits for this goroutine instead of starting another. So only one goroutine is
// blocked, however many requests stop waiting.
func TestTimedOutRequestsLeaveOnlyOneGoroutineWaiting(t *testing.T) {
	path, _ := newFile(t)
	store := lab.Must(boltstore.Open(path))(t)
	unlock := locked(t, path)
	before := waiting()
	for range 20 {
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		lab.WantErr(t, "View", store.(contextStore).WithContext(ctx).View(nothing), boltstore.ErrBusy)
		cancel()
	}
	lab.Want(t, "goroutines that wait for the lock", waiting()-before, 1)
	unlock()
	lab.OK(t, store.View(nothing))
	checkFree(t, path)
}

// waiting returns how many goroutines of this process wait for a file lock in flock(2).
func waiting() int {
	stacks := make([]byte, 1<<20)
	return strings.Count(string(stacks[:runtime.Stack(stacks, true)]), "boltstore.(*place).wait(")
}

func untilItWaits() {
	for waiting() == 0 {
		runtime.Gosched()
	}
}

func TestRequestReadsNewFileIfStoreFileIsReplacedDuringWait(t *testing.T) {
	path, client := newFile(t)
	lab.Must(increment(t.Context(), client, "k"))(t)
	unlock := locked(t, path)
	read := make(chan int)
	go func() { read <- stored(t, client, "k") }()
	untilItWaits()
	copied := filepath.Join(t.TempDir(), "copy.db")
	fresh := open(t, copied)
	lab.Must(fresh.CreateTable(t.Context(), tableOfLocks))(t)
	for range 5 {
		lab.Must(increment(t.Context(), fresh, "k"))(t)
	}
	lab.OK(t, os.Rename(copied, path))
	unlock()
	lab.Want(t, "n", <-read, 5)
}

// A process that writes in a loop cannot starve other processes, because the kernel queues
// them for the file lock.
func TestBusyProcessDoesNotStarveOtherProcesses(t *testing.T) {
	path, client := newFile(t)
	loop, lines := start(t, path, "loop", 0)
	lines.Scan() // waits until the other process has begun to write
	var reading sync.WaitGroup
	reading.Go(func() {
		for lines.Scan() {
		}
	})
	defer func() {
		_ = loop.Process.Kill()
		reading.Wait()
		_ = loop.Wait() // ignores the error, which only says that the process was killed
	}()
	for range 20 {
		lab.Must(increment(t.Context(), client, "k"))(t) // the store waits for ten seconds
	}
}
