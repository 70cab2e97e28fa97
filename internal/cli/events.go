package cli

import (
	"time"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/cli/failure"
	"github.com/leasehold-go/leasehold/internal/cli/store"
	"github.com/leasehold-go/leasehold/internal/cli/wording"
)

// eventJSON is one event of run --json.
type eventJSON struct {
	Time        string        `json:"time"`
	Event       string        `json:"event"`
	Key         string        `json:"key,omitempty"`
	SortKey     string        `json:"sortKey,omitempty"`
	Token       int64         `json:"token,omitempty"`
	TookMs      *int64        `json:"tookMs,omitempty"`
	RemainingMs *int64        `json:"remainingMs,omitempty"`
	Holder      *recordJSON   `json:"holder,omitempty"`
	HoldersSeen int           `json:"holdersSeen,omitempty"`
	LastsMs     *int64        `json:"lastsMs,omitempty"`
	Error       string        `json:"error,omitempty"`
	Advice      string        `json:"advice,omitempty"`
	Kind        string        `json:"kind,omitempty"` // of Error
	ExitCode    *int          `json:"exitCode,omitempty"`
	Processes   []processJSON `json:"processes,omitempty"`
	PID         int           `json:"pid,omitempty"`

	// Of a request, with -v.
	Operation string    `json:"operation,omitempty"`
	Keys      []keyJSON `json:"keys,omitempty"` // if there are several
	Attempt   int       `json:"attempt,omitempty"`
	RequestID string    `json:"requestId,omitempty"`
	Units     *float64  `json:"units,omitempty"`
	Outcome   string    `json:"outcome,omitempty"`
}

// processJSON is a process that CMD has started.
type processJSON struct {
	PID  int    `json:"pid"` // of a group, if its processes are not known
	Name string `json:"name,omitempty"`
}

// keyJSON is one of several keys.
type keyJSON struct {
	Key     string `json:"key"`
	SortKey string `json:"sortKey,omitempty"`
}

// Events that the command adds to those of the library.
const (
	eventStopping = "stopping" // the stop signal was sent to CMD
	eventExited   = "exited"   // CMD has ended, and what it left running if that is waited for

	eventBackground = "background" // CMD has ended, and processes that it started still run
	eventStarted    = "started"    // the first of --events
	eventEnded      = "ended"      // the last of --events
)

func newEvent(kind string, at time.Time) eventJSON {
	return eventJSON{Time: wording.Time(at), Event: kind}
}

// event returns an event with its time, kind and lock.
func (a *app) event(kind string, key leasehold.Key, token int64) eventJSON {
	e := newEvent(kind, a.Now())
	e.Key, e.SortKey, e.Token = key.Partition, key.Sort, token
	return e
}

func millis(d time.Duration) *int64 {
	ms := d.Milliseconds()
	return &ms
}

// clientEvent writes an event of the lock client, if it is one that users see.
// holdersSeen is for those about a wait.
func (a *app) clientEvent(s *store.Store, e leasehold.Event, holdersSeen int) {
	out := a.event(string(e.Kind), e.Key, e.Token)
	switch e.Kind {
	case leasehold.EventWaiting:
		out.Holder = &recordJSON{Table: s.Table, Record: *e.Holder}
		out.HoldersSeen = holdersSeen
	case leasehold.EventGranted:
		out.TookMs = millis(e.Took)
		out.HoldersSeen = holdersSeen
	case leasehold.EventReleased:
		out.TookMs = millis(e.Took)
	case leasehold.EventRenewError:
		out.RemainingMs = millis(e.Remaining)
	case leasehold.EventLost:
	default:
		return
	}
	if e.Err != nil {
		out.Error = failure.Text(e.Err, s.Where())
	}
	a.say.event(out)
}
