// Package boltstore keeps the tables of a localdynamo.Engine in one file, which
// all processes of a machine can share. It uses bbolt.
//
// Each transaction opens and locks the file, and closes it again, since bbolt
// keeps the file locked as long as it is open. That costs about a millisecond, and
// lets any number of processes take turns. A commit is on disk before it is
// acknowledged: if a process is killed at any moment, the file can be opened
// again, and has every acknowledged write.
//
// The lock is an advisory lock of the operating system (flock on Unix). Keep the
// file on a local disk, because network file systems may not support such locks.
package boltstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/leasehold-go/leasehold/internal/plainfile"
	"github.com/leasehold-go/leasehold/localdynamo"
	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"
)

// maxWait is how long a transaction waits for its turn before it fails. A turn
// takes a few milliseconds, so a file that stays locked for that long is kept open
// by another program.
const maxWait = 30 * time.Second

// Pauses between attempts to lock the file. They are short, so that a free file is
// used at once, and have jitter, so that waiting processes do not run in step.
const (
	minPause = 500 * time.Microsecond
	maxPause = 8 * time.Millisecond
)

// bucket is the only bucket of the file. Its name is the version of the format.
var bucket = []byte("localdynamo1")

var errClosed = errors.New("boltstore: the store is closed")

// Open opens or creates the file. The file is locked only during each request, so
// that processes take turns.
//
// A new file gets mode 0600, and a directory created for it 0700. A transaction
// that finds the file locked waits for up to 30 seconds, or until the context of
// its request ends. Errors name the path. Open refuses a file that is not a store, an
// empty one too (ErrEmpty), and one that another user may have planted: a symbolic link,
// a file with two names, and, where others may write to its directory, a file that is
// neither the caller's, nor root's, nor that of the directory's owner, nor of a group
// that alone may write there.
func Open(path string, options ...Option) (localdynamo.Store, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("boltstore: make the directory of %s: %w", path, err)
	}
	s := &store{file: &file{path: path, turn: make(chan struct{}, 1), owner: plainfile.Members}, ctx: context.Background()}
	for _, set := range options {
		set(s.file)
	}
	// The first transaction makes the file, and shows whether it can be used.
	if err := s.View(func(localdynamo.Tx) error { return nil }); err != nil {
		return nil, err
	}
	return s, nil
}

// Option changes what Open does.
type Option func(*file)

// OfAnyUser lets the file belong to whoever may write to its directory: those users trust
// each other with every lock in it.
func OfAnyUser() Option { return func(f *file) { f.owner = plainfile.Anybody } }

// file is shared by all stores that WithContext returns.
type file struct {
	path   string
	turn   chan struct{} // full while a goroutine of this process has its turn
	closed atomic.Bool
	owner  plainfile.Owner
	looked atomic.Bool // the structure was checked
}

// store is a localdynamo.Store. Its transactions stop waiting when ctx ends.
type store struct {
	*file
	ctx context.Context
}

// WithContext returns the store for one request. Its transactions stop waiting for
// their turn when ctx ends.
func (s *store) WithContext(ctx context.Context) localdynamo.Store {
	return &store{s.file, ctx}
}

// Close makes later transactions fail. Nothing is open between transactions.
func (s *store) Close() error {
	s.closed.Store(true)
	return nil
}

// View calls fn with the state after the last Update.
func (s *store) View(fn func(localdynamo.Tx) error) error {
	return s.use(fn, func(db *bbolt.DB, calling func(*bbolt.Bucket) error) error {
		return db.View(func(tx *bbolt.Tx) error { return s.in(tx, calling) })
	})
}

// Update calls fn, and commits its changes unless it fails.
func (s *store) Update(fn func(localdynamo.Tx) error) error {
	return s.use(fn, func(db *bbolt.DB, calling func(*bbolt.Bucket) error) error {
		return db.Update(func(tx *bbolt.Tx) error { return s.in(tx, calling) })
	})
}

// in calls fn with our bucket. A file without it, which Make does not leave behind, would
// look like a store in which nothing is held.
func (s *store) in(tx *bbolt.Tx, fn func(*bbolt.Bucket) error) error {
	if b := tx.Bucket(bucket); b != nil {
		return fn(b)
	}
	if name, _ := tx.Cursor().First(); name != nil {
		return fmt.Errorf("boltstore: %s has the format %q, and this version reads %q: use the version of leasehold that has written it, or another file", s.path, name, bucket)
	}
	return s.damaged("its records are gone")
}

func (s *store) damaged(why any) error {
	return fmt.Errorf("boltstore: %s is damaged: end what uses it, and put back a copy of it or move it away: %v", s.path, why)
}

// use waits for this goroutine's turn and opens the file. Then in begins a transaction,
// which calls fn.
//
// What checkStructure does not see, or changes after it has, makes bbolt panic or read
// beyond the end of its mapping. Either becomes an error. What fn itself panics with is
// left to the caller.
func (s *store) use(fn func(localdynamo.Tx) error, in func(*bbolt.DB, func(*bbolt.Bucket) error) error) (err error) {
	ctx, cancel := context.WithTimeoutCause(s.ctx, maxWait, fmt.Errorf(
		"boltstore: %s was busy for %v: another process keeps it open; end it, or use another file", s.path, maxWait))
	defer cancel()
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-ctx.Done():
		return s.waited(ctx)
	}
	if s.closed.Load() {
		return errClosed
	}
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	var open *os.File
	inStore := true // and not in fn
	var db *bbolt.DB
	defer func() {
		p := recover()
		if p == nil {
			return
		}
		if _, fault := p.(interface{ Addr() uintptr }); !fault && !inStore {
			_ = db.Close() // its transaction has been rolled back
			panic(p)
		}
		// bbolt's own Close may wait for the locks of the transaction that has panicked.
		// Its mapping stays, and would keep the file locked.
		unlock(open)
		_ = open.Close()
		err = s.damaged(p)
	}()
	db, err = s.open(ctx, &open)
	if err != nil {
		return err
	}
	err = in(db, func(b *bbolt.Bucket) error {
		inStore = false
		err := fn(transaction{b, &inStore})
		inStore = true
		return err
	})
	return errors.Join(err, db.Close())
}

// waited returns why the wait has ended: the request's context, or maxWait.
func (s *store) waited(ctx context.Context) error {
	if err := s.ctx.Err(); err != nil {
		return err
	}
	return context.Cause(ctx)
}

// open opens and locks the file, and stores it in file. It tries until the file is free
// or ctx ends. It does not use bbolt's own wait, which has pauses of 50 ms and no
// context.
func (s *store) open(ctx context.Context, file **os.File) (*bbolt.DB, error) {
	options := *bbolt.DefaultOptions
	options.Timeout = time.Nanosecond
	options.OpenFile = func(path string, flag int, _ fs.FileMode) (*os.File, error) {
		f, err := openOrMake(path, flag, s.owner)
		if err != nil {
			return nil, err
		}
		*file = f
		if err := s.look(f); err != nil {
			return nil, errors.Join(err, f.Close())
		}
		return f, nil
	}
	for pause := minPause; ; pause = min(2*pause, maxPause) {
		db, err := bbolt.Open(s.path, 0o600, &options)
		switch {
		case err == nil:
			return db, nil
		case errors.As(err, new(damageError)):
			return nil, s.damaged(err)
		case errors.Is(err, fs.ErrPermission):
			return nil, fmt.Errorf("boltstore: %w: it belongs to another user, or its directory does", err)
		case !errors.Is(err, bolterrors.ErrTimeout):
			return nil, fmt.Errorf("boltstore: open %s: %w", s.path, err)
		}
		select {
		case <-time.After(rand.N(pause) + pause/2):
		case <-ctx.Done():
			return nil, s.waited(ctx)
		}
	}
}

// transaction implements localdynamo.Tx on the file's bucket. inStore is true while
// bbolt runs: what panics then is bbolt.
type transaction struct {
	bucket  *bbolt.Bucket
	inStore *bool
}

// enter marks that bbolt runs, until leave.
func (tx transaction) enter() { *tx.inStore = true }

// leave marks that the caller of the transaction runs.
func (tx transaction) leave() { *tx.inStore = false }

// Get returns the key's value, or nil.
func (tx transaction) Get(key []byte) []byte {
	tx.enter()
	value := tx.bucket.Get(key)
	tx.leave()
	return value
}

// Put sets the key's value. bbolt keeps the value until the commit, so it gets
// a copy.
func (tx transaction) Put(key, value []byte) error {
	tx.enter()
	err := tx.bucket.Put(key, bytes.Clone(value))
	tx.leave()
	return err
}

// Delete removes the key if it exists.
func (tx transaction) Delete(key []byte) error {
	tx.enter()
	err := tx.bucket.Delete(key)
	tx.leave()
	return err
}

// Range yields the pairs with from <= key < to.
func (tx transaction) Range(from, to []byte) iter.Seq2[[]byte, []byte] {
	return func(yield func([]byte, []byte) bool) {
		tx.enter()
		cursor := tx.bucket.Cursor()
		for key, value := cursor.Seek(from); key != nil; key, value = cursor.Next() {
			tx.leave()
			if to != nil && bytes.Compare(key, to) >= 0 || !yield(key, value) {
				return
			}
			tx.enter()
		}
		tx.leave()
	}
}
