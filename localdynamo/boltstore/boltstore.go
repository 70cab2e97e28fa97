// Package boltstore keeps a localdynamo.Engine's tables in one file that the
// processes of one machine share. It needs bbolt.
//
// The file is opened, locked, used and closed again in every transaction, since
// bbolt's lock lasts as long as a file is open. That costs a millisecond or so,
// and lets any number of processes take turns. A commit is on disk before it is
// acknowledged: a process that is killed at any instant leaves a file that opens
// and has every acknowledged write in it.
//
// The lock is the operating system's advisory one (flock on Unix). Keep the file
// on a local disk: network file systems may not honour it.
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
	"sync/atomic"
	"time"

	"github.com/leasehold-go/leasehold/localdynamo"
	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"
)

// maxWait is how long a transaction waits for its turn before it fails. At a few
// milliseconds a turn that is thousands of turns: a file locked for so long is
// one that somebody keeps open.
const maxWait = 30 * time.Second

// Pauses between tries for the file's lock: short enough that a free file is not
// left idle, with jitter so that waiting processes do not move in step.
const (
	minPause = 500 * time.Microsecond
	maxPause = 8 * time.Millisecond
)

// bucket is the one bucket of the file. Its name is the format's version.
var bucket = []byte("localdynamo1")

var errClosed = errors.New("boltstore: the store is closed")

// Open opens or creates the file. The file is locked per request, not for as
// long as it is open, so that processes take turns.
//
// A new file is readable and writable by its owner alone (0600), and so is a
// directory made for it (0700). A transaction that finds the file busy waits for
// up to 30 seconds, or until its request's context ends. An error names the
// path; a file that is no store is refused here.
func Open(path string) (localdynamo.Store, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("boltstore: make the directory of %s: %w", path, err)
	}
	s := &store{file: &file{path: path, turn: make(chan struct{}, 1)}, ctx: context.Background()}
	// The first transaction makes the file and shows whether it can be used.
	if err := s.Update(func(localdynamo.Tx) error { return nil }); err != nil {
		return nil, err
	}
	return s, nil
}

// file is what all views of one store share.
type file struct {
	path   string
	turn   chan struct{} // holds a token while one of this process's goroutines has its turn
	closed atomic.Bool
}

// store is a localdynamo.Store whose transactions wait until ctx ends.
type store struct {
	*file
	ctx context.Context
}

// WithContext returns the store for one request: its transactions stop waiting
// for their turn when ctx ends.
func (s *store) WithContext(ctx context.Context) localdynamo.Store {
	return &store{s.file, ctx}
}

// Close makes later transactions fail. Nothing is open between transactions.
func (s *store) Close() error {
	s.closed.Store(true)
	return nil
}

// View runs fn on the file as the last Update left it.
func (s *store) View(fn func(localdynamo.Tx) error) error {
	return s.use(func(db *bbolt.DB) error {
		return db.View(func(tx *bbolt.Tx) error {
			b := tx.Bucket(bucket)
			if b == nil {
				return fmt.Errorf("boltstore: %s is not the file that was opened: it was deleted or replaced", s.path)
			}
			return fn(transaction{b})
		})
	})
}

// Update runs fn, and commits what it did unless it fails.
func (s *store) Update(fn func(localdynamo.Tx) error) error {
	return s.use(func(db *bbolt.DB) error {
		return db.Update(func(tx *bbolt.Tx) error {
			b, err := tx.CreateBucketIfNotExists(bucket)
			if err != nil {
				return err
			}
			return fn(transaction{b})
		})
	})
}

// use waits for this goroutine's turn and runs fn on the open file.
func (s *store) use(fn func(*bbolt.DB) error) (err error) {
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
	db, err := s.open(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	return fn(db)
}

// waited says why waiting has ended: with the request, or after maxWait.
func (s *store) waited(ctx context.Context) error {
	if err := s.ctx.Err(); err != nil {
		return err
	}
	return context.Cause(ctx)
}

// open opens and locks the file, trying until it is free or ctx ends. bbolt's
// own wait is coarser (50 ms a try) and knows no context, so it tries once.
func (s *store) open(ctx context.Context) (*bbolt.DB, error) {
	options := *bbolt.DefaultOptions
	options.Timeout, options.OpenFile = time.Nanosecond, openThenCreate
	for pause := minPause; ; pause = min(2*pause, maxPause) {
		db, err := bbolt.Open(s.path, 0o600, &options)
		switch {
		case err == nil:
			return db, nil
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

// openThenCreate asks for a file to be created only where there is none. In a
// directory that all may write to, Linux refuses whoever asks for it when the
// file is another's (protected_regular in proc_sys_fs(5)).
func openThenCreate(path string, flag int, mode fs.FileMode) (*os.File, error) {
	f, err := os.OpenFile(path, flag&^os.O_CREATE, mode)
	if errors.Is(err, fs.ErrNotExist) && flag&os.O_CREATE != 0 {
		return os.OpenFile(path, flag, mode)
	}
	return f, err
}

// transaction is a localdynamo.Tx on the file's bucket.
type transaction struct{ bucket *bbolt.Bucket }

// Get returns the key's value, or nil.
func (tx transaction) Get(key []byte) []byte { return tx.bucket.Get(key) }

// Put sets the key's value. bbolt keeps the value until the commit, so it gets
// a copy.
func (tx transaction) Put(key, value []byte) error {
	return tx.bucket.Put(key, bytes.Clone(value))
}

// Delete removes the key, if it is there.
func (tx transaction) Delete(key []byte) error { return tx.bucket.Delete(key) }

// Range yields the pairs from from up to to.
func (tx transaction) Range(from, to []byte) iter.Seq2[[]byte, []byte] {
	return func(yield func([]byte, []byte) bool) {
		cursor := tx.bucket.Cursor()
		for key, value := cursor.Seek(from); key != nil; key, value = cursor.Next() {
			if to != nil && bytes.Compare(key, to) >= 0 || !yield(key, value) {
				return
			}
		}
	}
}
