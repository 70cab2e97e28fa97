package leasehold

import "time"

// EventKind is a kind of event. New kinds may be added: ignore unknown ones.
type EventKind string

// Kinds of events.
const (
	EventWaiting    EventKind = "waiting"     // a call waits for Holder; emitted once for each holder that the call sees, and for each Position
	EventGranted    EventKind = "granted"     // a call acquired a key; Took is the time since the call began
	EventRenewed    EventKind = "renewed"     // a renewal succeeded; Took is the time of its request
	EventRenewError EventKind = "renew_error" // a renewal failed, and is retried; Remaining is for how long the lock is still trusted
	EventLost       EventKind = "lost"        // a lock was lost; Err is the *LostError
	EventReleased   EventKind = "released"    // a key was released; Took is the time since the release began, Held the time from the grant until then
	EventCommitted  EventKind = "committed"   // a commit has ended; Err is why it failed; Took is the time from the first request to the last answer
	EventDone       EventKind = "done"        // a call with Once or Every ended without a grant: its work is done; Err is the *DoneError, Took the time since the call began
	EventThrottled  EventKind = "throttled"   // a request was throttled, and is retried
	EventWaitError  EventKind = "wait_error"  // requests of a waiting call fail, and are retried; emitted at the first failure, then once a minute
	EventGaveUp     EventKind = "gave_up"     // a call ended without a grant; not emitted if NoWait met a holder; Took is the time since the call began
	EventRegion     EventKind = "region"      // package regions now sends requests to Region; Err is why it left the last Region, or nil if the home Region serves again
)

// Event reports one thing that has happened. Fields that do not apply are zero. Sums of Requests
// must omit EventThrottled, as the last event of a call counts throttled requests again. Only one
// event of a grant contains Held.
type Event struct {
	Kind      EventKind
	Time      time.Time     // when it happened, by the wall clock
	Key       Key           // the key; the first key for a commit of several locks
	Token     int64         // fencing token; 0 before there is a grant
	Took      time.Duration // a duration; the comment on the event's Kind says from when to when
	Held      time.Duration // how long the grant lasted
	Remaining time.Duration // for how long the lock is still trusted
	Requests  int           // number of requests sent to DynamoDB
	TookOver  bool          // EventGranted only: the key was taken over from a dead holder
	Local     bool          // EventGranted only: another goroutine of this client has handed the key over
	Holder    *Record       // EventWaiting only: a copy of the record
	Position  int           // EventWaiting only: the position in the queue, from 1; 0 if the call is not in the queue
	Region    string        // EventRegion only: the Region that requests go to
	Err       error         // nil if nothing went wrong
}
