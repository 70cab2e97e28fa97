package leasehold

import "time"

// EventKind says what has happened. New kinds may come: ignore the unknown.
type EventKind string

// The kinds of events.
const (
	EventWaiting    EventKind = "waiting"     // a call waits for Holder; once for each holder that it sees, and each Place in line
	EventGranted    EventKind = "granted"     // Took: from the call to the grant
	EventRenewed    EventKind = "renewed"     // Took: the request
	EventRenewError EventKind = "renew_error" // a renewal failed, and is retried; Remaining: until trust ends
	EventLost       EventKind = "lost"        // Err: the *LostError
	EventReleased   EventKind = "released"    // Took: the request; Held: since the grant
	EventCommitted  EventKind = "committed"   // a commit has ended; Err: why it failed; Took: from the first request to the last answer
	EventDone       EventKind = "done"        // a call with Once or Every ended without a grant: its work is done; Err: the *DoneError; Took: since the call
	EventThrottled  EventKind = "throttled"   // a request was throttled, and is retried
	EventWaitError  EventKind = "wait_error"  // the requests of a wait fail, and are retried; the first time, then once a minute
	EventGaveUp     EventKind = "gave_up"     // a call ended without a grant, but not a try that met a holder; Took: since the call
)

// Event is one thing that has happened. Fields that do not apply are zero.
//
// Held can be summed up: the time of each grant is in one event, that of its loss
// or else of its first release. To sum up Requests, leave out those of
// EventThrottled: the event that ends the call counts them too.
type Event struct {
	Kind      EventKind
	Time      time.Time     // when it happened, by the wall clock
	Key       Key           // of a commit of several locks, the first
	Token     int64         // of the grant; 0 before there is one
	Took      time.Duration // from when to when: see the kinds
	Held      time.Duration // how long the grant lasted
	Remaining time.Duration // how long the lock is still trusted
	Requests  int           // sent to DynamoDB
	TookOver  bool          // granted: from a dead holder
	Local     bool          // granted: handed over by another goroutine of this client
	Holder    *Record       // waiting: a copy of the record
	Place     int           // waiting: in line, from 1, see Config.Line; 0: in none
	Err       error         // what went wrong; nil: nothing
}
