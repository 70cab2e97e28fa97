package leasehold

import "time"

// EventKind says what has happened. New kinds may come: ignore the unknown.
type EventKind string

// The kinds of events.
const (
	EventWaiting    EventKind = "waiting"     // a call waits for Holder: when it is first seen, and when another holds
	EventGranted    EventKind = "granted"     // Took: from the call to the grant
	EventRenewed    EventKind = "renewed"     // Took: the request
	EventRenewError EventKind = "renew_error" // a renewal failed, and is retried; Remaining: until trust ends
	EventLost       EventKind = "lost"        // Err: the *LostError
	EventReleased   EventKind = "released"    // Took: the request; Held: since the grant
	EventCommitted  EventKind = "committed"   // or not: Err says why; Took: from the first request to the last answer
	EventThrottled  EventKind = "throttled"   // a request was throttled, and is retried
	EventWaitError  EventKind = "wait_error"  // the requests of a wait fail, and are retried; the first time, then once a minute
	EventGaveUp     EventKind = "gave_up"     // a call ended without a grant; Took: since the call; not of a try that met a holder
)

// Event is one thing that has happened. Fields that do not apply are zero.
//
// Held can be summed up: the time of a grant is in one event, that of its loss or
// else of its first release. So can Requests, without those of EventThrottled:
// these are in the event that ends the call as well.
type Event struct {
	Kind      EventKind
	Time      time.Time     // when it happened, by the wall clock
	Key       Key           // of a commit of several locks, the first
	Token     int64         // of the grant; 0 before there is one
	Took      time.Duration // what for, its kind says
	Held      time.Duration // how long the grant lasted
	Remaining time.Duration // how long the lock is still trusted
	Requests  int           // sent to DynamoDB
	TookOver  bool          // granted: from a dead holder
	Local     bool          // granted: handed over by another goroutine of this client
	Holder    *Record       // waiting: a copy of the record
	Err       error         // what went wrong; nil: nothing
}
