// Package boltstore keeps the tables of a localdynamo.Engine in one file, which
// all processes of a machine can share. It uses bbolt.
//
// Each transaction opens and locks the file, and closes it again, because bbolt keeps the file
// locked as long as it is open. That costs about a millisecond, and lets any number of
// processes use the file in turn. A commit is on disk before it is acknowledged. If a process
// is killed at any moment, the file can be opened again, and has every acknowledged write.
//
// The lock is an advisory lock of the operating system (flock on Unix, where the kernel
// queues the processes that wait). Keep the file on a local disk, because network file
// systems may not support such locks.
package boltstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/leasehold-go/leasehold/internal/filefault"
	"github.com/leasehold-go/leasehold/internal/plainfile"
	"github.com/leasehold-go/leasehold/localdynamo"
	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"
)

// patience is how long a transaction waits for the file if its context has no deadline. Each
// process locks the file for a few milliseconds, and the kernel grants the lock in order. So if a
// transaction has waited this long, some process keeps the file locked.
const patience = 10 * time.Second

// bucket is the only bucket in a store's file. Its name is the version of the file format.
var bucket = []byte("localdynamo1")

var errClosed = errors.New("boltstore: the store is closed")

// ErrBusy is returned if Open, OpenContext or a transaction stopped waiting for the file, because
// another process kept it locked. Match it with errors.Is. Nothing was changed. If the context is
// done, the error also matches the context's error.
var ErrBusy = errors.New("another process keeps it locked: end that process, or continue it if it was stopped")

// Open opens or creates the file. The file is locked only during each request, so that processes
// can use it in turn.
//
// A new file gets mode 0600. If Open creates the file's directory, the directory gets mode 0700. A
// transaction that finds the file locked waits until the context of its request is done. If the
// context has no deadline, the transaction waits for at most 10 seconds, and so does Open. Every
// error contains the path.
//
// Open refuses a file that is not a store, even an empty file (ErrEmpty). It also refuses a file
// that another user may have planted: a symbolic link, or a file with several hard links. If all
// users may write to the directory, the file must belong to the user of this process, to root or to
// the directory's owner. If the directory's group may write to the directory, but other users may
// not, the file may have any owner.
func Open(path string, options ...Option) (localdynamo.Store, error) {
	s := newStore(path, options)
	if err := s.first(); err != nil {
		return nil, err
	}
	return s, nil
}

// OpenContext is like Open, but waits for a locked file until ctx is done. It uses ctx only for
// this wait: the store stays open when ctx is done.
func OpenContext(ctx context.Context, path string, options ...Option) (localdynamo.Store, error) {
	s := newStore(path, options)
	if err := (&store{file: s.file, ctx: ctx, patient: true}).first(); err != nil {
		return nil, err
	}
	return s, nil
}

func newStore(path string, options []Option) *store {
	s := &store{file: &file{path: path, turn: make(chan struct{}, 1), owner: plainfile.Members, patience: patience}, ctx: context.Background()}
	for _, set := range options {
		set(s.file)
	}
	return s
}

// The method "first" is called when a store is opened. It creates the file if the file does not
// exist, and returns an error if the file cannot be used.
func (s *store) first() error {
	if err := os.MkdirAll(filepath.Dir(s.path), 0o700); err != nil {
		return fmt.Errorf("boltstore: make the directory of %s: %w", s.path, err)
	}
	return s.View(func(localdynamo.Tx) error { return nil })
}

// Option is an option of Open and OpenContext.
type Option func(*file)

// OfAnyUser allows a file that belongs to any user who may write to the file's directory. With
// this option, you trust all these users with every lock in the file.
func OfAnyUser() Option { return func(f *file) { f.owner = plainfile.Anybody } }

// file is the state shared by a store and all stores that WithContext derives from it.
type file struct {
	path string
	turn chan struct{} // semaphore that is full while a goroutine of this process uses the file
	// Position in the kernel's queue for the file lock. A request that stops waiting stores its
	// position here, and the next request takes it. Nil if no position is stored. Only the
	// goroutine that has filled the channel "turn" may use this field.
	place    *place
	closed   atomic.Bool
	owner    plainfile.Owner
	patience time.Duration // longest wait for the file if a transaction's context has no deadline
	looked   atomic.Bool   // whether the structure of the file has been checked
}

// store is a localdynamo.Store. Its transactions stop waiting for the file when ctx is done.
type store struct {
	*file
	ctx context.Context
	// If ctx has no deadline, a transaction waits for the file for at most file.patience. If
	// patient is true, this limit does not apply.
	patient bool
}

// WithContext returns a store for one request. Transactions of that store stop waiting for the file
// when ctx is done.
func (s *store) WithContext(ctx context.Context) localdynamo.Store {
	return &store{file: s.file, ctx: ctx}
}

// Close makes later transactions fail. It has no file to close, because the file is open only
// during transactions.
func (s *store) Close() error {
	s.closed.Store(true)
	return nil
}

// View calls fn with the state that the last Update has committed.
func (s *store) View(fn func(localdynamo.Tx) error) error {
	return s.use(fn, func(db *bbolt.DB, calling func(*bbolt.Bucket) error) error {
		return db.View(func(tx *bbolt.Tx) error { return s.withBucket(tx, calling) })
	})
}

// Update calls fn, and commits the changes of fn unless fn returns an error.
func (s *store) Update(fn func(localdynamo.Tx) error) error {
	return s.use(fn, func(db *bbolt.DB, calling func(*bbolt.Bucket) error) error {
		return grown(s.path, db.Update(func(tx *bbolt.Tx) error { return s.withBucket(tx, calling) }))
	})
}

// grown returns the error of a commit to the file at path. If the file would exceed the allowed
// size, bbolt's error contains only the text of EFBIG. grown then returns an error that wraps
// EFBIG, so that the caller can recognise it.
func grown(path string, err error) error {
	if err != nil && strings.HasPrefix(err.Error(), "file resize error: ") && strings.HasSuffix(err.Error(), ": "+syscall.EFBIG.Error()) {
		return &fs.PathError{Op: "truncate", Path: path, Err: syscall.EFBIG}
	}
	return err
}

// withBucket calls fn with the bucket that contains the tables. The function Make has created this
// bucket in every file. If the bucket does not exist, withBucket returns an error, because an empty
// store would look as if no lock were held.
func (s *store) withBucket(tx *bbolt.Tx, fn func(*bbolt.Bucket) error) error {
	if b := tx.Bucket(bucket); b != nil {
		return fn(b)
	}
	if name, _ := tx.Cursor().First(); name != nil {
		return filefault.Lasting(fmt.Errorf("boltstore: %s has the format %q, and this version reads %q: use the version of leasehold that has written it, or another file", s.path, name, bucket))
	}
	return s.damaged("its records are gone")
}

func (s *store) damaged(why any) error {
	return filefault.Lasting(fmt.Errorf("boltstore: %s is damaged: end what uses it, and put back a copy of it or move it away: %v", s.path, why))
}

// marked wraps err by filefault.Lasting if no request can succeed until an operator repairs the
// file, its directory or the limits of the process. It returns other errors unchanged.
func marked(err error) error {
	fault, known := filefault.Of(err)
	switch {
	case known && !fault.Passes(),
		errors.As(err, new(*plainfile.Error)), errors.Is(err, fs.ErrPermission), errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR),
		errors.Is(err, ErrEmpty), errors.Is(err, bolterrors.ErrInvalid), errors.Is(err, bolterrors.ErrVersionMismatch), errors.Is(err, bolterrors.ErrChecksum):
		return filefault.Lasting(err)
	}
	return err
}

// use executes one transaction: it waits for its turn, opens the file, and calls transact, which
// calls fn.
//
// The file may be damaged despite checkStructure: bbolt may then panic or cause a memory fault.
// Both become errors, but a panic of fn is passed on.
func (s *store) use(fn func(localdynamo.Tx) error, transact func(*bbolt.DB, func(*bbolt.Bucket) error) error) (err error) {
	ctx, began := s.ctx, time.Now()
	if _, ends := ctx.Deadline(); !ends && !s.patient {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, s.patience)
		defer cancel()
	}
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-ctx.Done():
		return s.busy(began)
	}
	if s.closed.Load() {
		return errClosed
	}
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	var open *os.File
	// False while code of fn runs, true while code of bbolt runs.
	inStore := true
	var db *bbolt.DB
	defer func() {
		p := recover()
		if p == nil {
			return
		}
		if _, fault := p.(interface{ Addr() uintptr }); !fault && !inStore {
			_ = db.Close() // the error is ignored, because bbolt has already rolled the transaction back
			panic(p)
		}
		// Do not call bbolt's own Close: it may wait for the locks of the transaction that has
		// panicked. So the memory mapping of the file stays. The mapping would keep the file locked,
		// so unlock the file here.
		unlock(open)
		_ = open.Close()
		err = s.damaged(p)
	}()
	db, err = s.open(ctx, &open)
	if err != nil && ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return s.busy(began)
	}
	if err != nil {
		return marked(err)
	}
	err = transact(db, func(b *bbolt.Bucket) error {
		inStore = false
		err := fn(transaction{b, &inStore})
		inStore = true
		return err
	})
	if closing := db.Close(); closing != nil {
		err = errors.Join(err, closing)
	}
	return marked(err)
}

// busyError is the error of a transaction that gave up waiting for the file.
type busyError struct {
	path  string
	waits time.Duration
	ended error // error of the request's context; nil if the context has not ended
}

func (e *busyError) Error() string {
	return fmt.Sprintf("boltstore: %s was busy for %v: %v", e.path, e.waits.Round(100*time.Millisecond), ErrBusy)
}

func (e *busyError) Unwrap() []error {
	if e.ended == nil {
		return []error{ErrBusy}
	}
	return []error{ErrBusy, e.ended}
}

func (s *store) busy(began time.Time) error {
	return &busyError{path: s.path, waits: time.Since(began), ended: s.ctx.Err()}
}

// open waits for the file and opens it with bbolt. It stores the opened file, which is now
// locked, in *locked.
func (s *store) open(ctx context.Context, locked **os.File) (db *bbolt.DB, err error) {
	options := *bbolt.DefaultOptions
	options.Timeout = time.Nanosecond // bbolt must not wait for the lock, because inTurn waits for it
	err = s.inTurn(ctx, func(f *os.File) (err error) {
		*locked = f
		options.OpenFile = func(string, int, fs.FileMode) (*os.File, error) { return f, nil }
		db, err = bbolt.Open(s.path, 0o600, &options)
		return err
	})
	switch {
	case err == nil:
		return db, nil
	case errors.As(err, new(damageError)), strings.HasPrefix(err.Error(), "file size too small"): // bbolt's error for a file of less than two pages
		return nil, s.damaged(err)
	case errors.Is(err, fs.ErrPermission):
		return nil, fmt.Errorf("boltstore: %w: it belongs to another user, or its directory does", err)
	}
	if errors.As(err, new(*fs.PathError)) { // the path is not added, because a PathError already contains it
		return nil, fmt.Errorf("boltstore: %w", err)
	}
	return nil, fmt.Errorf("boltstore: open %s: %w", s.path, err)
}

// transaction implements localdynamo.Tx on the store's bucket. inStore is true while code of bbolt
// runs. After a panic, inStore shows whether bbolt or the caller's code has panicked.
type transaction struct {
	bucket  *bbolt.Bucket
	inStore *bool
}

// enter records that a call to bbolt begins.
func (tx transaction) enter() { *tx.inStore = true }

// leave records that a call to bbolt has ended.
func (tx transaction) leave() { *tx.inStore = false }

// Get returns the value of key, or nil if the key does not exist.
func (tx transaction) Get(key []byte) []byte {
	tx.enter()
	value := tx.bucket.Get(key)
	tx.leave()
	return value
}

// Put sets the value of key. It gives bbolt copies, because bbolt uses the slices until the
// commit.
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

// Range yields the pairs with from <= key < to. If to is nil, there is no upper bound.
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
