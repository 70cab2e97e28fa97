package say

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/cli/failure"
	"github.com/leasehold-go/leasehold/internal/cli/wording"
	"github.com/leasehold-go/leasehold/internal/plainfile"
	"github.com/leasehold-go/leasehold/internal/visible"
)

// Event is one event in the output of "run --json" or --events.
type Event struct {
	Time        string          `json:"time"`
	Event       string          `json:"event"`
	Key         string          `json:"key,omitempty"`
	SortKey     string          `json:"sortKey,omitempty"`
	Token       int64           `json:"token,omitempty"`
	TookMs      *int64          `json:"tookMs,omitempty"`
	RemainingMs *int64          `json:"remainingMs,omitempty"`
	Holder      *Record         `json:"holder,omitempty"`
	HoldersSeen int             `json:"holdersSeen,omitempty"`
	Position    int             `json:"position,omitempty"` // position in the queue, from 1
	Done        *leasehold.Done `json:"done,omitempty"`     // work that another run had already done (--once or --every)
	LastsMs     *int64          `json:"lastsMs,omitempty"`
	Error       string          `json:"error,omitempty"`
	Advice      string          `json:"advice,omitempty"`
	Kind        string          `json:"kind,omitempty"` // kind of the error in Error, as in failure.Kind
	ExitCode    *int            `json:"exitCode,omitempty"`
	Processes   []Process       `json:"processes,omitempty"`
	PID         int             `json:"pid,omitempty"`

	// About one request, with --verbose:
	Operation string   `json:"operation,omitempty"`
	Keys      []Key    `json:"keys,omitempty"` // keys of the request if there are several
	Attempt   int      `json:"attempt,omitempty"`
	RequestID string   `json:"requestId,omitempty"`
	Units     *float64 `json:"units,omitempty"`
	Outcome   string   `json:"outcome,omitempty"`
}

// Process is a process that CMD has started and that outlives CMD.
type Process struct {
	PID  int    `json:"pid"` // process id; or, if CMD's process group cannot be listed, that group's id
	Name string `json:"name,omitempty"`
}

// Key is one of the keys in a request with several keys.
type Key struct {
	Key     string `json:"key"`
	SortKey string `json:"sortKey,omitempty"`
}

// Kinds of event that the command adds to those of package leasehold.
const (
	Stopping = "stopping" // leasehold sends the stop signal to CMD
	Exited   = "exited"   // CMD has ended, and "run" no longer waits for processes that CMD has started

	Background = "background" // CMD has ended, but processes that it has started still run
	Started    = "started"    // the first event of --events
	Ended      = "ended"      // the last event of --events
)

// NewEvent returns an Event with the given kind and time.
func NewEvent(kind string, at time.Time) Event {
	return Event{Time: wording.Time(at), Event: kind}
}

// Of returns a copy of e with the key and fencing token of a lock.
func (e Event) Of(key leasehold.Key, token int64) Event {
	e.Key, e.SortKey, e.Token = key.Partition, key.Sort, token
	return e
}

// Millis returns d in milliseconds, as a pointer for an optional field of an Event.
func Millis(d time.Duration) *int64 {
	ms := d.Milliseconds()
	return &ms
}

// ClientEvent writes e, an event of the lock client, if its kind concerns users. The parameter
// "holdersSeen" is the number of holders for which the client has waited. Only the events "waiting"
// and "granted" contain this number.
func (m *Messages) ClientEvent(e leasehold.Event, at time.Time, holdersSeen int) {
	m.mu.Lock()
	table, where := m.table, m.where
	m.mu.Unlock()
	out := NewEvent(string(e.Kind), at).Of(e.Key, e.Token)
	switch e.Kind {
	case leasehold.EventWaiting:
		out.Holder, out.Position = &Record{Table: table, Record: *e.Holder}, e.Position
		out.HoldersSeen = holdersSeen
	case leasehold.EventGranted:
		out.TookMs = Millis(e.Took)
		out.HoldersSeen = holdersSeen
	case leasehold.EventReleased:
		out.TookMs = Millis(e.Took)
	case leasehold.EventRenewError:
		out.RemainingMs = Millis(e.Remaining)
	case leasehold.EventLost:
	case leasehold.EventDone:
		if done, is := failure.As[*leasehold.DoneError](e.Err); is {
			out.Done = &done.Done
		}
		e.Err = nil // out.Done is shown instead of the error
	default:
		return
	}
	if e.Err != nil {
		out.Error = failure.Text(e.Err, where)
	}
	m.Event(out)
}

const (
	// eventsPatience limits how long leasehold waits for the reader of the events. It waits
	// when it opens the stream, and again before it exits.
	eventsPatience = time.Second

	// readerPatience limits the wait until a process opens the FIFO for reading. If a shell
	// starts "reader fifo &" and leasehold at the same time, leasehold may be first.
	readerPatience = 3 * time.Second
)

// OpenEvents opens the stream that the value of --events describes: the number of an inherited
// file descriptor, or a file to append to. It writes the first event, so that an error such as a
// full disk appears before leasehold acquires a lock.
func (m *Messages) OpenEvents(to string, now time.Time) error {
	if to == "" {
		return nil
	}
	open := openEventFile
	if strings.Trim(to, "0123456789") == "" {
		open = openInherited
	}
	f, err := open(to)
	if err != nil {
		return err
	}
	var opened atomic.Bool
	events := &Output{queue: &queue{to: f, broken: func(n int, err error) {
		if end, unknown := f.Seek(0, io.SeekCurrent); unknown == nil && n > 0 { // a full disk has cut off an event, and a later run appends its first event to this line
			_ = f.Truncate(end - int64(n))
		}
		if opened.Load() { // otherwise OpenEvents returns err
			m.Note("no more events are written to %s: %v; CMD is not affected", visible.Name(to), failure.WithoutPath(err))
		}
	}}}
	started := NewEvent(Started, now)
	started.PID = os.Getpid()
	_ = events.Show(jsonLine(started))
	if _, err := events.queue.await(eventsPatience); err != nil { // nil if the reader is slow
		return failure.Misusef("--events %s: %v", visible.Name(to), failure.WithoutPath(err))
	}
	opened.Store(true)
	m.events, m.eventsTo = events, to // without m.mu, because no other goroutine uses m yet
	return nil
}

// EndEvents writes the last event. If the reader was too slow to receive all events, EndEvents
// prints a message.
func (m *Messages) EndEvents(now time.Time, code int, err error) {
	if m.events == nil {
		return
	}
	ended := NewEvent(Ended, now)
	ended.ExitCode = &code
	if !failure.Silent(err) {
		failure := m.failure(err)
		ended.Error, ended.Kind, ended.Holder = failure.Message, failure.Error, failure.Record
	}
	m.Event(ended)
	m.flush(m.events, eventsPatience, visible.Name(m.eventsTo))
}

// openEventFile opens the file at path to append to it. If it is a FIFO, openEventFile
// waits up to readerPatience for its reader.
func openEventFile(path string) (*os.File, error) {
	for first := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		f, err := openToAppend(path)
		switch {
		case err == nil:
			return f, nil
		case !noReader(path, err):
			return nil, failure.Misusef("--events %s: %v", visible.Name(path), failure.WithoutPath(err))
		case time.Since(first) >= readerPatience:
			return nil, failure.Misusef("--events %s: no process has this FIFO open for reading: start its reader first", visible.Name(path))
		}
	}
}

// noReader reports whether err means that path is a FIFO that no process has open for
// reading.
func noReader(path string, err error) bool {
	info, unknown := os.Stat(path)
	return errors.Is(err, syscall.ENXIO) && unknown == nil && info.Mode()&fs.ModeNamedPipe != 0
}

// openToAppend opens the file at path to append to it. It creates the file if it does not
// exist.
func openToAppend(path string) (*os.File, error) {
	const flag = os.O_WRONLY | os.O_APPEND | syscall.O_NONBLOCK
	f, err := plainfile.OpenNamed(path, flag)
	if errors.Is(err, fs.ErrNotExist) {
		if path, err = plainfile.Named(path); err == nil {
			f, err = os.OpenFile(path, flag|os.O_CREATE|os.O_EXCL, 0o644) //nolint:gosec // other users may read the file but never write it, whatever the umask
		}
	}
	if errors.Is(err, fs.ErrExist) { // another process created it after the first OpenNamed
		f, err = plainfile.OpenNamed(path, flag)
	}
	return f, err
}
