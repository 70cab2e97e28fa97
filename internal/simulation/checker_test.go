package simulation

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/core"
	"github.com/leasehold-go/leasehold/internal/lab"
)

// checker records what each process sends and receives, what the table applies, and when each
// process trusts a grant. The text of a violation contains the number of an invariant in
// docs/guarantees.md. For a rule of one workload, it contains the workload's name instead.
type checker struct {
	mu       sync.Mutex
	clocked  bool // set for layouts whose records have an expiry time
	began    time.Time
	problems []string
	tally    *tally
	faults   []injected
	// history contains every request sent, every write applied, and the beginning and end of
	// every period of trust in a grant. Tests use it to compare two runs of a seed.
	history history
	deletes bool // some process deletes its records on release, so a copy of a request that arrives late may create a record again

	longest         time.Duration   // the longest lease of any client
	trustsPastLease bool            // clients may trust a lock for longer than its lease while DynamoDB is unavailable
	broken          map[string]bool // grants that an operator broke; the checker does not check the trust in these grants
	// deleted contains the grants whose record was deleted by hand, so that their commits are
	// rejected. If a late copy of a grant's request creates the record again, a late copy of a
	// rejected commit may be applied. This is no violation.
	deleted       map[string]bool
	brokenAt      map[string]time.Time            // time at which a Break returned nil, by the grant that it broke
	noticedWithin time.Duration                   // each holder must learn of a break within this time; 0 if no time is promised
	spoils        map[string]types.AttributeValue // lease of each row before the row was damaged by hand, by key

	table    *lab.World           // table to which requests are applied
	records  map[string]*state    // state of each record in the table, by key
	versions map[string]bool      // versions that have been in some record
	pairs    map[[2]string]bool   // pairs of grant id and token that have been in some record
	terms    map[[2]string]int    // id of the process that was granted a lock, by the grant's owner and token
	trusts   map[string]time.Time // latest time until which an applied attempt allows a process to trust a grant, by grant
	handed   map[string]handed    // grants that a holder handed to the head of a queue, by grant
	joined   map[string]*process  // process that asked to join a queue, by the version of its queue entry
	seen     map[seenBy]time.Time // time of the first reply that showed a version to a process, by process and version
	// ends contains, by version of a record, the time until which the holder trusts its lock. It
	// lacks versions that were written without a lease end.
	ends        map[string]time.Time
	lastWritten map[string]time.Time     // time of the last write to a record by any process except lastClient, by key
	sessions    map[string]*sessionState // state of each session, by session id
	beliefs     []*belief
	over        map[[2]string]bool     // locks whose Release returned nil, by grant id and token; false if processes delete records
	commits     map[string]*commitCall // commits, by the value that they append
	logs        map[string][]string    // values that commits have appended to the log of each key
	worked      map[[2]string]bool     // key and token of each lock under which work that must succeed only once has succeeded
	writes      *writes                // writes that are checked against the models of proof/spec; nil if they are not checked
}

// handed is a grant that the previous holder has handed to the head of the record's queue. For the
// head, the lease begins at one of the head's own reads, sent before the table applied the
// hand-over.
type handed struct {
	applied time.Time     // time when the table applied the hand-over
	trust   time.Duration // longest time for which the head may trust the grant, by its own clock
}

// belief is a period in which a process trusts a grant.
type belief struct {
	by         *process
	lock       *leasehold.Lock
	grant      string
	session    string
	began, end time.Time
}

func newChecker() *checker {
	return &checker{
		began: time.Now(), tally: newTally(), history: history{began: time.Now()}, records: map[string]*state{}, versions: map[string]bool{},
		pairs: map[[2]string]bool{}, terms: map[[2]string]int{},
		trusts: map[string]time.Time{}, handed: map[string]handed{}, joined: map[string]*process{}, seen: map[seenBy]time.Time{}, ends: map[string]time.Time{}, over: map[[2]string]bool{},
		sessions: map[string]*sessionState{}, lastWritten: map[string]time.Time{}, broken: map[string]bool{}, brokenAt: map[string]time.Time{}, deleted: map[string]bool{}, spoils: map[string]types.AttributeValue{},
		commits: map[string]*commitCall{}, logs: map[string][]string{}, worked: map[[2]string]bool{},
	}
}

func (c *checker) violated(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.note(format, args...)
}

func (c *checker) note(format string, args ...any) {
	c.problems = append(c.problems, fmt.Sprintf("invariant "+format, args...))
}

func (c *checker) first() string {
	if len(c.problems) == 0 {
		return ""
	}
	return c.problems[0]
}

// believes records that a process begins to trust a lock. When the lock is released or lost,
// the checker also records the end of this trust.
func (c *checker) believes(by *process, lock *leasehold.Lock) {
	if lock.Err() != nil {
		return // not recorded: the lock has already ended
	}
	b := &belief{by: by, lock: lock, grant: lock.Record().Grant, began: time.Now()}
	c.mu.Lock()
	if s := c.records[lock.Key().Partition]; s != nil && s.grant == b.grant {
		b.session = s.session
	}
	c.beliefs = append(c.beliefs, b)
	c.trusted(b)
	c.history.enter("process %d begins to trust grant %s of %v", by.id, b.grant, lock.Key())
	c.mu.Unlock()
	context.AfterFunc(lock.Context(), func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		b.end = time.Now()
		c.doubted(lock.Key().Partition)
		c.history.enter("process %d stops trusting grant %s of %v", by.id, b.grant, lock.Key())
	})
}

// sent is called when a request is sent. It records the request, and checks it against the beliefs
// of the request's sender.
func (c *checker) sent(r *request) {
	if c.clocked {
		return // these checks do not fit layouts with expiry times, whose renewals are different
	}
	c.mu.Lock()
	c.wrote(r)
	about := c.believed(r)
	// The map "over" is true for beliefs that ended before the request was sent. It is false for a
	// belief that ended at the same instant: the process may have sent the request just before the
	// end.
	over := map[*belief]bool{}
	for _, b := range about {
		over[b] = !b.end.IsZero() && b.end.Before(r.at)
	}
	c.mu.Unlock()
	for _, b := range about {
		err := b.lock.Err()
		trusted := err == nil
		switch {
		case r.manner == renews && errors.Is(err, core.ErrDetached): // no violation: the holder detached the grant, so that another process can resume it
		case r.manner == renews && over[b]:
			c.violated("9: process %d renews grant %s after its trust has ended: %v", r.by.id, b.grant, err)
		case r.givesUp && trusted && !r.Guards(b.lock.Key().Partition):
			c.violated("6: process %d ends grant %s while it trusts it", r.by.id, b.grant)
		}
	}
}

// newestBy returns the process that was the last to begin to trust the grant, or nil if no
// process has. The caller must hold c.mu.
func (c *checker) newestBy(grant string) *process {
	var by *process
	for _, b := range c.beliefs {
		if b.grant == grant {
			by = b.by
		}
	}
	return by
}

// believed returns the beliefs of the request's sender in the grants whose ids the request
// contains. It omits the grant that the request creates. If the sender has detached and resumed a
// grant, only its newest belief in that grant counts.
func (c *checker) believed(r *request) []*belief {
	// Reads need no check, and neither do renewals of sessions. Both may contain the ids of broken
	// grants, but they neither renew nor end a grant.
	if r.manner == reads || r.RenewsSession() {
		return nil
	}
	newest := map[string]*belief{}
	// made is the grant that the request creates. The sender may already trust it. For example, the
	// sender repeats a hand-over to a waiter of its own process, and the waiter has trusted the grant
	// since the first attempt.
	made := r.NewGrant()
	for _, b := range c.beliefs {
		if b.by == r.by && b.grant != made && bytes.Contains(r.Body, []byte(b.grant)) {
			newest[b.grant] = b
		}
	}
	var out []*belief
	for _, b := range newest {
		out = append(out, b)
	}
	return out
}

// applied passes a request to the table and checks what the request has changed
// there. It applies requests one at a time.
func (c *checker) applied(r *request, apply func() (*http.Response, error)) (*http.Response, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	res, err := apply()
	if err == nil {
		c.met(r, res)
	}
	if err != nil || res.StatusCode != http.StatusOK || r.manner == reads {
		return res, err
	}
	if c.clocked {
		c.changesByTheClock(r, res)
		return res, nil
	}
	if r.manner == commits {
		c.committed(r)
		return res, nil
	}
	for _, part := range r.Parts() {
		var in struct{ Key map[string]struct{ S string } }
		if err := json.Unmarshal(part.Body, &in); err != nil {
			c.note("0: unreadable request: %v", err)
			return res, nil
		}
		key := in.Key["key"].S
		var item attributeMap
		switch {
		case r.Op == "TransactWriteItems": // a reply to a transaction does not contain the items that the transaction has written
			item = attributesOf(c.table.Item(key))
			if before := c.records[key]; before != nil && item != nil && before.version == item.text("recordVersionNumber") {
				continue // skipped: DynamoDB recognizes a copy of a transaction by its idempotency token, so it has no effect
			}
		case part.Op == "UpdateItem":
			item = attributes(res)
		}
		if item == nil {
			c.applies(r, key, "deleted")
			delete(c.records, key)
			delete(c.spoils, key)
			continue
		}
		c.changes(r, key, c.mended(key, item))
	}
	return res, nil
}

// received is called when a reply arrives. It records what the reply shows to the process that sent
// the request.
func (c *checker) received(r *request, res *http.Response) {
	body := bodyOf(res)
	c.mu.Lock()
	defer c.mu.Unlock()
	var out struct {
		Item, Attributes    attributeMap
		Responses           map[string][]attributeMap
		CancellationReasons []struct{ Item attributeMap }
	}
	if json.Unmarshal(body, &out) != nil {
		return
	}
	c.heard(r, res.StatusCode, body)
	shown := append(out.Responses["locks"], out.Item, out.Attributes)
	for _, reason := range out.CancellationReasons {
		shown = append(shown, reason.Item)
	}
	for _, item := range shown {
		c.sees(r.by, item.text("recordVersionNumber"))
	}
}

// releasedForGood records that a Release of the lock returned nil.
func (c *checker) releasedForGood(lock *leasehold.Lock) {
	c.mu.Lock()
	defer c.mu.Unlock()
	grant := lock.Record().Grant
	if !c.deletes && c.isCurrent(lock.Key().Partition, grant, lock.Token()) {
		c.note("8: Release of grant %s returned nil, but the record still shows the grant", grant)
	}
	c.over[[2]string{grant, strconv.FormatInt(lock.Token(), 10)}] = !c.deletes
}

// supports returns the world's time until which the sender of r may trust its grant. The sender
// measures the length "trust" with its own clock. So with a slow clock, its trust ends later. With
// a fast clock, it does not end earlier, because timers run by the world's clock.
func (r *request) supports(trust time.Duration) time.Time {
	return r.at.Add(time.Duration(float64(trust)/min(r.by.rate, 1)) + time.Microsecond) // a microsecond more, because of rounding
}

// finish checks the beliefs of all processes against each other. The caller must call it
// after all beliefs have ended.
func (c *checker) finish() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.settleCommits()
	for i, b := range c.beliefs {
		if b.end.IsZero() {
			c.note("1: process %d never stopped trusting grant %s", b.by.id, b.grant)
			continue
		}
		c.checkHearing(b)
		supported := c.trusts[b.grant]
		if h, ok := c.handed[b.grant]; ok {
			if until := h.applied.Add(time.Duration(float64(h.trust)/min(b.by.rate, 1)) + time.Microsecond); until.After(supported) {
				supported = until
			}
		}
		if s := c.sessions[b.session]; s != nil && s.trust.Before(supported) {
			supported = s.trust
		}
		if b.end.After(supported) && !c.trustsPastLease {
			c.note("5: process %d trusted grant %s until %v, but its attempts allow this only until %v", b.by.id, b.grant, b.end, supported)
		}
		for _, o := range c.beliefs[:i] {
			if c.broken[o.grant] || c.broken[b.grant] || c.trustsPastLease {
				continue
			}
			if o.lock.Key() == b.lock.Key() && o.began.Before(b.end) && b.began.Before(o.end) {
				c.note("1: processes %d and %d both trusted a grant of %v", o.by.id, b.by.id, b.lock.Key())
			}
		}
	}
}
