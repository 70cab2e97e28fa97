//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package boltstore

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"sync"
	"syscall"
)

// inTurn locks the file, and then calls open with the locked file. A process does not poll for
// the lock: the kernel queues the callers of flock(2), and grants them the lock in order.
func (s *store) inTurn(ctx context.Context, open func(*os.File) error) error {
	f, err := s.lock(ctx)
	if err != nil {
		return err
	}
	if err := s.look(f); err != nil {
		return errors.Join(err, f.Close())
	}
	return open(f)
}

// lock waits until it can lock the file, and returns the locked file.
func (s *store) lock(ctx context.Context) (*os.File, error) {
	for {
		p := s.place
		s.place = nil
		if p == nil || !p.join() {
			f, err := openOrMake(s.path, os.O_RDWR, s.owner)
			if err != nil {
				return nil, err
			}
			err = flock(f, syscall.LOCK_EX|syscall.LOCK_NB)
			switch {
			case err == nil:
				return f, nil
			case !errors.Is(err, syscall.EWOULDBLOCK):
				return nil, errors.Join(err, f.Close())
			}
			p = &place{file: f, wanted: true, granted: make(chan struct{})}
			go p.wait()
		}
		select {
		case <-p.granted:
		case <-ctx.Done():
			if p.leave() {
				s.place = p
			}
			return nil, ctx.Err()
		}
		if p.err != nil {
			return nil, p.err
		}
		current, err := s.isCurrent(p.file)
		if err == nil && current {
			return p.file, nil
		}
		if err := errors.Join(err, p.file.Close()); err != nil {
			return nil, err
		}
	}
}

// isCurrent reports whether the locked file is still the file at the store's path, and is not
// empty.
func (s *store) isCurrent(f *os.File) (bool, error) {
	locked, err := f.Stat()
	if err != nil {
		return false, err
	}
	named, err := os.Stat(s.path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil && os.SameFile(locked, named) && named.Size() > 0, err
}

// place is a position in the kernel's queue for the lock of the file. A call of flock(2) cannot be
// cancelled, so it keeps its position even if its request stops waiting. The next request of the
// store then takes over the position.
type place struct {
	file    *os.File
	granted chan struct{} // closed when flock returns: the kernel has granted the lock, or flock has failed
	err     error         // error of flock; set before granted is closed

	mu     sync.Mutex // guards the fields below; not held while the kernel waits
	wanted bool       // whether a transaction waits for the lock or has it
	over   bool       // whether flock has returned
}

// wait calls flock. If no transaction wants the lock when flock returns, wait releases the lock
// immediately.
func (p *place) wait() {
	err := flock(p.file, syscall.LOCK_EX)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.err, p.over = err, true
	if err != nil || !p.wanted {
		_ = p.file.Close()
	}
	close(p.granted)
}

// join makes a new transaction wait at this position, and returns true. If flock has already
// returned, the position no longer exists, and join returns false.
func (p *place) join() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.wanted = !p.over
	return p.wanted
}

// leave ends a transaction's wait. It returns true if flock is still waiting, so that another
// transaction can join this position. Otherwise it returns false. If flock has acquired the lock,
// leave releases the lock.
func (p *place) leave() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.wanted = false
	if p.over && p.err == nil {
		_ = p.file.Close()
	}
	return !p.over
}

// flock calls flock(2), and repeats the call when a signal interrupts it.
func flock(f *os.File, how int) error {
	for {
		if err := syscall.Flock(int(f.Fd()), how); !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}

// unlock releases the lock on the file.
func unlock(f *os.File) { _ = flock(f, syscall.LOCK_UN) }

// look checks the structure of the locked file. After one successful check, later calls skip the
// check if only root and the user of this process may write to the file. The caller must hold
// the lock, because another process may change an unlocked file.
func (s *file) look(f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if s.looked.Load() && ours(info) {
		return nil
	}
	if info.Size() > maxFile {
		return damagef("it has %d bytes", info.Size())
	}
	b, err := syscall.Mmap(int(f.Fd()), 0, int(info.Size()), syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		return err
	}
	defer func() { _ = syscall.Munmap(b) }()
	if err := checkStructure(b); err != nil {
		return err
	}
	s.looked.Store(true)
	return nil
}

// ours reports whether only root and the user of this process may write to a file.
func ours(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && (st.Uid == 0 || int(st.Uid) == os.Geteuid()) && info.Mode().Perm()&0o022 == 0
}
