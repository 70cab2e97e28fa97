package say

import (
	"encoding/json"
	"errors"
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
	// eventsKept is the number of events that are buffered for a slow reader. Further
	// events are dropped, because neither the lock nor CMD may wait for the reader.
	eventsKept = 1024

	// eventsPatience limits how long leasehold waits for the reader of the events. It waits
	// when it opens the stream, and again before it exits.
	eventsPatience = time.Second

	// readerPatience limits the wait until a process opens the FIFO for reading. If a shell
	// starts "reader fifo &" and leasehold at the same time, leasehold may be first.
	readerPatience = 3 * time.Second
)

// eventStream writes the events for --events, one JSON object a line. It writes in a
// goroutine, so send never waits for the reader and returns no error.
type eventStream struct {
	name    string // file name or descriptor number as the user gave it
	lines   chan []byte
	first   chan error    // receives the result of the first write, nil or an error
	done    chan struct{} // closed after the last write
	broken  func(error)   // called once if a write after the first fails
	dropped atomic.Int64  // number of events dropped because the buffer was full
}

func newEventStream(name string, broken func(error)) *eventStream {
	return &eventStream{
		name: name, broken: broken,
		lines: make(chan []byte, eventsKept), first: make(chan error, 1), done: make(chan struct{}),
	}
}

// OpenEvents opens the stream that the value of --events describes: the number of an inherited
// file descriptor, or the name of a file. Events are appended to the file. OpenEvents writes the
// first event, so that an error such as a full disk appears before leasehold acquires a lock.
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
	s := newEventStream(to, func(err error) {
		m.Note("no more events are written to %s: %v; CMD is not affected", visible.Name(to), failure.WithoutPath(err))
	})
	go s.write(f)
	started := NewEvent(Started, now)
	started.PID = os.Getpid()
	s.send(started)
	select {
	case err = <-s.first:
	case <-time.After(eventsPatience): // the reader may just be slow: continue without the result
	}
	if err != nil {
		s.end()
		return failure.Misusef("--events %s: %v", visible.Name(to), failure.WithoutPath(err))
	}
	m.setStream(s)
	return nil
}

// EndEvents writes the last event and closes the stream. If the reader was too slow to
// receive all events, EndEvents prints a message.
func (m *Messages) EndEvents(now time.Time, code int, err error) {
	s := m.setStream(nil)
	if s == nil {
		return
	}
	ended := NewEvent(Ended, now)
	ended.ExitCode = &code
	if !failure.Silent(err) {
		failure := m.failure(err)
		ended.Error, ended.Kind, ended.Holder = failure.Message, failure.Error, failure.Record
	}
	s.send(ended)
	if n := s.end(); n > 0 {
		m.Note("%s not written to %s: its reader is too slow", wording.Count(int(n), "event was", "events were"), visible.Name(s.name))
	}
}

// setStream sets the stream that receives all later events. It returns the previous stream.
func (m *Messages) setStream(s *eventStream) (before *eventStream) {
	m.mu.Lock()
	defer m.mu.Unlock()
	before, m.stream = m.stream, s
	return before
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
	if !errors.Is(err, syscall.ENXIO) {
		return false
	}
	info, err := os.Stat(path)
	return err == nil && info.Mode()&fs.ModeNamedPipe != 0
}

// openToAppend opens the file at path to append to it. It creates the file if it does not
// exist.
func openToAppend(path string) (*os.File, error) {
	const flag = os.O_WRONLY | os.O_APPEND | syscall.O_NONBLOCK
	f, err := plainfile.OpenNamed(path, flag)
	if errors.Is(err, fs.ErrNotExist) {
		var file string
		if file, err = plainfile.Named(path); err == nil {
			f, err = os.OpenFile(file, flag|os.O_CREATE|os.O_EXCL, 0o644) //nolint:gosec // other users may read the file but never write it, whatever the umask
		}
	}
	if errors.Is(err, fs.ErrExist) { // another process created it after the first OpenNamed
		f, err = plainfile.OpenNamed(path, flag)
	}
	return f, err
}

// write writes each line to f. After a failed write it drops all later lines. It returns
// when the channel lines is closed.
func (s *eventStream) write(f *os.File) {
	defer close(s.done)
	defer f.Close()
	_, failed := f.Write(<-s.lines)
	s.first <- failed
	for line := range s.lines {
		if failed != nil {
			continue
		}
		if _, failed = f.Write(line); failed != nil {
			s.broken(failed)
		}
	}
}

// send passes e to the goroutine that writes it. It drops e if the buffer is full.
func (s *eventStream) send(e Event) {
	b, err := json.Marshal(e)
	if err != nil {
		b, _ = json.Marshal(map[string]string{"error": err.Error()})
	}
	select {
	case s.lines <- []byte(visible.Text(string(b)) + "\n"):
	default:
		s.dropped.Add(1)
	}
}

// end closes the stream, and waits up to eventsPatience until everything is written. It
// returns how many events were not written. send must not be called after end.
func (s *eventStream) end() (unwritten int64) {
	close(s.lines)
	select {
	case <-s.done:
	case <-time.After(eventsPatience):
	}
	return s.dropped.Load() + int64(len(s.lines))
}
