package leasehold

import "time"

// EventKind says what an Event is about. New kinds may come: ignore unknown
// ones.
type EventKind string

// The kinds of events.
const (
	EventWaiting    EventKind = "waiting"     // first seen held by Holder, or holder changed
	EventGranted    EventKind = "granted"     // Took: from call to grant
	EventRenewed    EventKind = "renewed"     // Took: the request
	EventRenewError EventKind = "renew_error" // Remaining: what trust is left; retried
	EventLost       EventKind = "lost"        // Err is *LostError
	EventReleased   EventKind = "released"    // Took: the request; Held: since the grant
	EventCommitted  EventKind = "committed"   // Err nil or why not; Took: from the first request to the last answer
	EventThrottled  EventKind = "throttled"   // a request was throttled and will be repeated
	EventWaitError  EventKind = "wait_error"  // requests of a wait fail and are repeated: the first time, then once a minute
	EventGaveUp     EventKind = "gave_up"     // a call of Acquire ended without a grant: Took: since the call; Err why. Not of a try that met a holder
)

// Event is one thing that happened. Fields that do not apply are zero.
//
// Held and Requests can be summed up. The time of a grant is in one event, that
// of its loss or else of its first release. A request is in no two of them, but
// for that of an EventThrottled, which is in the event of the call as well:
// leave it out.
type Event struct {
	Kind      EventKind
	Time      time.Time
	Key       Key
	Token     int64
	Took      time.Duration
	Held      time.Duration
	Remaining time.Duration
	Requests  int     // DynamoDB requests spent
	TookOver  bool    // granted: from a dead holder
	Local     bool    // granted: handed over inside this client
	Holder    *Record // waiting
	Err       error
}
