package leasehold

import "time"

// EventKind is a kind of event. New kinds may come: ignore unknown ones.
type EventKind string

// Kinds of events.
const (
	EventWaiting    EventKind = "waiting"     // a call waits for Holder; once for each holder that it sees, and each Position
	EventGranted    EventKind = "granted"     // Took: from the call to the grant
	EventRenewed    EventKind = "renewed"     // Took: the request
	EventRenewError EventKind = "renew_error" // a renewal failed, and is retried; Remaining: until trust ends
	EventLost       EventKind = "lost"        // Err: the *LostError
	EventReleased   EventKind = "released"    // Took: the request; Held: since the grant
	EventCommitted  EventKind = "committed"   // a commit has ended; Err: why it failed; Took: from the first request to the last answer
	EventDone       EventKind = "done"        // a call with Once or Every ended without a grant: its work is done; Err: the *DoneError; Took: since the call
	EventThrottled  EventKind = "throttled"   // a request was throttled, and is retried
	EventWaitError  EventKind = "wait_error"  // the requests of a wait fail, and are retried; the first time, then once a minute
	EventGaveUp     EventKind = "gave_up"     // a call ended without a grant, unless NoWait met a holder; Took: since the call
	EventRegion     EventKind = "region"      // package regions: requests now go to Region; Err: why they left the last one, nil if back home
)

// Event reports one thing that has happened. Fields that do not apply are zero. Sums of
// Held and of Requests count nothing twice, if the Requests of EventThrottled are left out:
// the event that ends the call includes them.
type Event struct {
	Kind      EventKind
	Time      time.Time     // when it happened, by the wall clock
	Key       Key           // the first key, for a commit of several locks
	Token     int64         // fencing token; 0 before there is a grant
	Took      time.Duration // a duration; its beginning and end depend on Kind
	Held      time.Duration // how long the grant lasted
	Remaining time.Duration // for how long the lock is still trusted
	Requests  int           // number of requests sent to DynamoDB
	TookOver  bool          // granted: the key was taken over from a dead holder
	Local     bool          // granted: another goroutine of this client has handed the key over
	Holder    *Record       // waiting: a copy of the record
	Position  int           // waiting: the position in the queue, from 1; 0 if the call is not in it
	Region    string        // region: the Region that requests go to
	Err       error         // nil if nothing went wrong
}
