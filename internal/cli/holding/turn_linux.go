package holding

import (
	"errors"
	"hash/fnv"
	"os"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/leasehold-go/leasehold/internal/plainfile"
)

// takeTurn joins the line of those on this machine who wait for a key of a local store:
// each looks rarely until its turn has come (see package pace). The line is a lock of
// the kernel's on a byte far behind the end of the store's file, which nobody else
// locks (fcntl(2), F_OFD_SETLKW): a process that ends, however, leaves it, and there is
// nothing to clean up. One that is stopped at its head holds nobody up for long, since
// those behind look rarely, too.
//
// turn is closed once it has come, and nil if there is no line. leave is called once.
func takeTurn(file, key string) (turn <-chan struct{}, leave func()) {
	f, err := plainfile.Open(file, os.O_RDWR, plainfile.Anybody) // it was opened as a store before
	if err != nil {
		return nil, func() {}
	}
	line := unix.Flock_t{Type: unix.F_WRLCK, Start: placeInFile(key), Len: 1}
	err = unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLK, &line)
	came := make(chan struct{})
	if err == nil {
		close(came)
		return came, func() { _ = f.Close() }
	}
	if !errors.Is(err, unix.EAGAIN) && !errors.Is(err, unix.EACCES) {
		_ = f.Close()
		return nil, func() {} // the file system has no such locks
	}
	var mu sync.Mutex // guards what follows
	var first, left bool
	go func() { // nothing ends this wait but the turn: whoever has left passes it on
		for {
			if err := unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLKW, &line); !errors.Is(err, unix.EINTR) {
				break
			}
		}
		mu.Lock()
		defer mu.Unlock()
		first = true
		close(came)
		if left {
			_ = f.Close()
		}
	}()
	return came, func() {
		mu.Lock()
		defer mu.Unlock()
		left = true
		if first {
			_ = f.Close()
		}
	}
}

// placeInFile is the byte that stands for a key. Keys that share one share their line.
func placeInFile(key string) int64 {
	const begin, places = 1 << 60, 1 << 60 // no file is as long
	h := fnv.New64a()
	_, _ = h.Write([]byte(key))
	return begin + int64(h.Sum64()%places)
}
