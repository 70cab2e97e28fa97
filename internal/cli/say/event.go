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

// Event is one event of run --json.
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
	Done        *leasehold.Done `json:"done,omitempty"`     // the work that was already done
	LastsMs     *int64          `json:"lastsMs,omitempty"`
	Error       string          `json:"error,omitempty"`
	Advice      string          `json:"advice,omitempty"`
	Kind        string          `json:"kind,omitempty"` // the kind of Error
	ExitCode    *int            `json:"exitCode,omitempty"`
	Processes   []Process       `json:"processes,omitempty"`
	PID         int             `json:"pid,omitempty"`

	// Fields of a request, with -v:
	Operation string   `json:"operation,omitempty"`
	Keys      []Key    `json:"keys,omitempty"` // set if there are several
	Attempt   int      `json:"attempt,omitempty"`
	RequestID string   `json:"requestId,omitempty"`
	Units     *float64 `json:"units,omitempty"`
	Outcome   string   `json:"outcome,omitempty"`
}

// Process is a process that CMD has started.
type Process struct {
	PID  int    `json:"pid"` // the id of the process group if its processes are not known
	Name string `json:"name,omitempty"`
}

// Key is one of several keys.
type Key struct {
	Key     string `json:"key"`
	SortKey string `json:"sortKey,omitempty"`
}

// Events that the command adds to those of the library.
const (
	Stopping = "stopping" // the stop signal was sent to CMD
	Exited   = "exited"   // CMD has ended; if run waits for the processes that CMD left running, they have ended, too

	Background = "background" // CMD has ended, and processes that it started still run
	Started    = "started"    // the first event of --events
	Ended      = "ended"      // the last event of --events
)

// NewEvent returns an event with its time and kind.
func NewEvent(kind string, at time.Time) Event {
	return Event{Time: wording.Time(at), Event: kind}
}

// Of returns the event with the key and token of a lock.
func (e Event) Of(key leasehold.Key, token int64) Event {
	e.Key, e.SortKey, e.Token = key.Partition, key.Sort, token
	return e
}

// Millis returns a duration in milliseconds, for a field of an event.
func Millis(d time.Duration) *int64 {
	ms := d.Milliseconds()
	return &ms
}

// ClientEvent writes an event of the lock client if events of its kind are meant for users.
// holdersSeen is used only for events about a wait.
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
		if done := (*leasehold.DoneError)(nil); errors.As(e.Err, &done) {
			out.Done = &done.Done
		}
		e.Err = nil // the event shows the work instead of the error
	default:
		return
	}
	if e.Err != nil {
		out.Error = failure.Text(e.Err, where)
	}
	m.Event(out)
}

const (
	// eventsKept is the number of events that can wait for a slow reader. Further events
	// are dropped: the lock and CMD never wait for the reader.
	eventsKept = 1024

	// eventsPatience limits the wait for the reader when the stream is opened and when the
	// command ends.
	eventsPatience = time.Second

	// readerPatience limits the wait for a reader to open a FIFO. A shell starts "reader
	// fifo &" and the command at the same time, and either may open the FIFO first.
	readerPatience = 3 * time.Second
)

// eventStream writes the events of --events, one JSON object per line. Once the stream is
// open, the senders of events never wait for a write, and never fail because of one.
type eventStream struct {
	name    string // name of the stream as the user gave it
	lines   chan []byte
	first   chan error    // receives the result of writing the first line: an error or nil
	done    chan struct{} // closed after the last write
	broken  func(error)   // called once, when a line after the first cannot be written
	dropped atomic.Int64  // lines dropped because the buffer was full
}

func newEventStream(name string, broken func(error)) *eventStream {
	return &eventStream{
		name: name, broken: broken,
		lines: make(chan []byte, eventsKept), first: make(chan error, 1), done: make(chan struct{}),
	}
}

// OpenEvents opens the stream named by --events: a file descriptor number, which this
// process must have inherited, or a file to append to. It writes the first event, so that a
// full disk is noticed before anything else is done.
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
	case <-time.After(eventsPatience): // continue without a result, since the reader of the stream may be slow
	}
	if err != nil {
		s.end()
		return failure.Misusef("--events %s: %v", visible.Name(to), failure.WithoutPath(err))
	}
	m.setStream(s)
	return nil
}

// EndEvents writes the last event. If the reader was too slow to receive all events,
// EndEvents also writes a message.
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

// setStream sets the stream for all events that follow, and returns the previous stream.
func (m *Messages) setStream(s *eventStream) (before *eventStream) {
	m.mu.Lock()
	defer m.mu.Unlock()
	before, m.stream = m.stream, s
	return before
}

// openEventFile opens a file to append to. It waits briefly for the reader of a FIFO.
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

// noReader reports whether a file could not be opened because no process reads from it.
func noReader(path string, err error) bool {
	if !errors.Is(err, syscall.ENXIO) {
		return false
	}
	info, err := os.Stat(path)
	return err == nil && info.Mode()&fs.ModeNamedPipe != 0
}

// openToAppend opens a file, and creates it if it does not exist.
func openToAppend(path string) (*os.File, error) {
	const flag = os.O_WRONLY | os.O_APPEND | syscall.O_NONBLOCK
	f, err := plainfile.OpenNamed(path, flag)
	if errors.Is(err, fs.ErrNotExist) {
		var file string
		if file, err = plainfile.Named(path); err == nil {
			f, err = os.OpenFile(file, flag|os.O_CREATE|os.O_EXCL, 0o644) //nolint:gosec // other users may read it, whatever the umask, and none of them may write
		}
	}
	if errors.Is(err, fs.ErrExist) { // another process has created the file since the first attempt
		f, err = plainfile.OpenNamed(path, flag)
	}
	return f, err
}

// write writes lines until the stream ends or breaks.
func (s *eventStream) write(f *os.File) {
	defer close(s.done)
	defer f.Close()
	lines := 0
	var failed error
	for line := range s.lines {
		if failed != nil {
			continue
		}
		_, failed = f.Write(line)
		switch lines++; {
		case lines == 1:
			s.first <- failed
		case failed != nil:
			s.broken(failed)
		}
	}
}

// send writes an event, or drops it if the buffer is full.
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

// end waits briefly for the reader. It returns the number of unwritten events. send must
// not be called after end.
func (s *eventStream) end() (unwritten int64) {
	close(s.lines)
	select {
	case <-s.done:
	case <-time.After(eventsPatience):
	}
	return s.dropped.Load() + int64(len(s.lines))
}
