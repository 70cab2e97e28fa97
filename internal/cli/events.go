package cli

import (
	"time"

	"github.com/leasehold-go/leasehold"
)

// eventJSON is one event of run --json.
type eventJSON struct {
	Time        string      `json:"time"`
	Event       string      `json:"event"`
	Key         string      `json:"key"`
	SortKey     string      `json:"sortKey,omitempty"`
	Token       int64       `json:"token,omitempty"`
	TookMs      *int64      `json:"tookMs,omitempty"`
	RemainingMs *int64      `json:"remainingMs,omitempty"`
	Holder      *recordJSON `json:"holder,omitempty"`
	Error       string      `json:"error,omitempty"`
	ExitCode    *int        `json:"exitCode,omitempty"`
}

// Events that the command adds to those of the library.
const (
	eventStopping = "stopping" // the stop signal was sent to CMD
	eventExited   = "exited"   // CMD has ended
)

// event returns an event with its time, kind and lock.
func (a *app) event(kind string, key leasehold.Key, token int64) eventJSON {
	return eventJSON{Time: timeJSON(a.Now()), Event: kind, Key: key.Partition, SortKey: key.Sort, Token: token}
}

func millis(d time.Duration) *int64 {
	ms := d.Milliseconds()
	return &ms
}

// libraryEvent writes an event of the library, if it is one that users see.
func (a *app) libraryEvent(s *store, e leasehold.Event) {
	out := a.event(string(e.Kind), e.Key, e.Token)
	switch e.Kind {
	case leasehold.EventWaiting:
		out.Holder = &recordJSON{Table: s.table, Record: *e.Holder}
	case leasehold.EventGranted, leasehold.EventReleased:
		out.TookMs = millis(e.Took)
	case leasehold.EventRenewError:
		out.RemainingMs = millis(e.Remaining)
	case leasehold.EventLost, leasehold.EventWaitError:
	default:
		return
	}
	if e.Err != nil {
		out.Error = errorText(e.Err, s.table+" in "+s.location)
	}
	a.say.event(out)
}
