package say

import (
	"errors"
	"time"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/cli/failure"
	"github.com/leasehold-go/leasehold/internal/cli/wording"
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
	Place       int             `json:"place,omitempty"` // in line, from 1
	Done        *leasehold.Done `json:"done,omitempty"`  // what was done already
	LastsMs     *int64          `json:"lastsMs,omitempty"`
	Error       string          `json:"error,omitempty"`
	Advice      string          `json:"advice,omitempty"`
	Kind        string          `json:"kind,omitempty"` // of Error
	ExitCode    *int            `json:"exitCode,omitempty"`
	Processes   []Process       `json:"processes,omitempty"`
	PID         int             `json:"pid,omitempty"`

	// Of a request, with -v.
	Operation string   `json:"operation,omitempty"`
	Keys      []Key    `json:"keys,omitempty"` // if there are several
	Attempt   int      `json:"attempt,omitempty"`
	RequestID string   `json:"requestId,omitempty"`
	Units     *float64 `json:"units,omitempty"`
	Outcome   string   `json:"outcome,omitempty"`
}

// Process is a process that CMD has started.
type Process struct {
	PID  int    `json:"pid"` // of a group, if its processes are not known
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
	Exited   = "exited"   // CMD has ended, and what it left running if that is waited for

	Background = "background" // CMD has ended, and processes that it started still run
	Started    = "started"    // the first of --events
	Ended      = "ended"      // the last of --events
)

// NewEvent returns an event with its time and kind.
func NewEvent(kind string, at time.Time) Event {
	return Event{Time: wording.Time(at), Event: kind}
}

// Of is the event with its lock.
func (e Event) Of(key leasehold.Key, token int64) Event {
	e.Key, e.SortKey, e.Token = key.Partition, key.Sort, token
	return e
}

// Millis is a duration in an event.
func Millis(d time.Duration) *int64 {
	ms := d.Milliseconds()
	return &ms
}

// ClientEvent writes an event of the lock client, if it is one that users see.
// holdersSeen is for those about a wait.
func (m *Messages) ClientEvent(e leasehold.Event, at time.Time, holdersSeen int) {
	m.mu.Lock()
	table, where := m.table, m.where
	m.mu.Unlock()
	out := NewEvent(string(e.Kind), at).Of(e.Key, e.Token)
	switch e.Kind {
	case leasehold.EventWaiting:
		out.Holder, out.Place = &Record{Table: table, Record: *e.Holder}, e.Place
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
		m.Event(out)
		return
	default:
		return
	}
	if e.Err != nil {
		out.Error = failure.Text(e.Err, where)
	}
	m.Event(out)
}
