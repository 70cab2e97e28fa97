package renewals

import (
	"sync"
	"time"

	"github.com/leasehold-go/leasehold/internal/decide"
)

// Scheduler schedules the renewals of a client's leases. It is safe for concurrent use. While it
// holds its mutex, it may call the caller's functions "chance" and "run", but never the function
// "send" of a lease.
type Scheduler struct {
	most   int            // number of slots for attempts in flight
	run    func(func())   // runs a function on a new goroutine
	chance func() float64 // returns a random number in [0,1)
	origin time.Time      // time of New; pace uses durations since origin as times

	mu       sync.Mutex       // guards the following fields
	later    line             // leases that are not due yet
	sure     line             // leases that are due, and whose last attempt was answered and not throttled
	doubtful line             // leases that are due, and whose last attempt had no answer or was throttled
	others   int              // number of attempts sent since the last attempt for a doubtful lease
	taken    [hanging + 1]int // number of attempts in flight, by the kind of slot
	added    int              // number of calls of Add
	demand   decide.Demand
	pace     decide.Pace
	next     time.Time // when the pace allows the next attempt to be sent
	timer    *time.Timer
}

// burst limits how many attempts a Scheduler sends at once to catch up with its pace: as many as
// the pace allows in this time.
const burst = 50 * time.Millisecond

// late defines a late attempt: it is sent more than period/late after it was due. A stall can
// make many attempts late, which are then sent together. To spread them, the next renewal after a
// late attempt comes at a random time of the period.
const late = 50

// othersFirst is the number of attempts for other leases that the Scheduler sends before each
// attempt for a doubtful lease. It applies while a pace limits the attempts and other leases are
// due. A lease is doubtful if its last attempt had no answer or was throttled.
const othersFirst = 4

// New returns a Scheduler. The parameter "most" is the number of slots for attempts in flight. For
// each attempt, the Scheduler calls the function "run", which runs its argument on a new goroutine.
// The function "chance" returns random numbers in [0,1).
func New(most int, run func(func()), chance func() float64) *Scheduler {
	return &Scheduler{
		most: most, run: run, chance: chance, origin: time.Now(),
		later: line{before: byDue}, sure: line{before: byTrust}, doubtful: line{before: byTrust},
	}
}

// Add makes the Scheduler renew a lease that is trusted for the duration "left". Each attempt is
// one call of send. The first attempt is due after the duration "soon". If soon is zero, it is due
// at a random time of the period's second half.
func (q *Scheduler) Add(t Times, left, soon time.Duration, send func() Outcome) *Lease {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := time.Now()
	q.added++
	// Because displaced is true, the second renewal is due at a random time of the period. So the
	// leases that were granted together are not renewed together.
	l := &Lease{send: send, times: t, number: q.added, ends: now.Add(left), displaced: true}
	if soon == 0 {
		soon = decide.FirstRenewal(t.Every, left, q.chance())
	}
	l.due = now.Add(soon)
	q.demand = q.demand.Add(t.Every, t.Trust)
	q.later.add(l)
	q.sendDue(now)
	return l
}

// lock locks q.mu and returns true. If l is nil or was removed, lock instead returns false and
// locks nothing. The calling method, for example Remove or Renewed, then does nothing.
func (q *Scheduler) lock(l *Lease) bool {
	if l == nil {
		return false
	}
	q.mu.Lock()
	if l.removed {
		q.mu.Unlock()
		return false
	}
	return true
}

// Remove makes the Scheduler stop renewing a lease. It does not wait for an attempt in
// flight.
func (q *Scheduler) Remove(l *Lease) {
	if !q.lock(l) {
		return
	}
	defer q.mu.Unlock()
	l.leaveLine()
	l.removed = true
	q.demand = q.demand.Remove(l.times.Every, l.times.Trust)
	q.sendDue(time.Now())
}

// Renewed records that a lease was renewed, by an attempt of the Scheduler or by another write. The
// parameter "took" is how long the renewal took, and "left" is how much longer the lease is
// trusted. Renewed schedules the next renewal.
func (q *Scheduler) Renewed(l *Lease, t Times, took, left time.Duration) {
	q.change(l, left, func(now time.Time) {
		q.demand = q.demand.Remove(l.times.Every, l.times.Trust).Add(t.Every, t.Trust)
		l.times = t
		l.displaced = l.displaced || l.sent.Sub(l.due) > t.Every/late
		l.due = now.Add(decide.NextRenewal(t.Every, took, left, l.displaced, q.chance()))
		l.displaced, l.doubtful, l.failures = false, false, 0
	})
}

// Lasts records for how much longer a lease is trusted, if that time has changed without a
// renewal.
func (q *Scheduler) Lasts(l *Lease, left time.Duration) {
	q.change(l, left, func(now time.Time) {
		if due := now.Add(max(left, 0) / 3); due.Before(l.due) {
			l.due = due
		}
	})
}

// change records that l is trusted for the duration "left" from now. It calls its last parameter,
// which may set l.due. Unless an attempt for l is in flight, l then returns to q.later. It does
// nothing if l was removed.
func (q *Scheduler) change(l *Lease, left time.Duration, change func(now time.Time)) {
	if !q.lock(l) {
		return
	}
	defer q.mu.Unlock()
	now, inFlight := time.Now(), l.line == nil
	l.leaveLine()
	l.ends = now.Add(left)
	change(now)
	if !inFlight {
		q.later.add(l)
	}
	q.sendDue(now)
}

// Waited reports whether a due renewal of the lease is waiting for a slot or for the pace. For a
// renewal in flight, it reports whether the renewal had to wait. If a lease was not renewed in time
// although Waited returns false, the process was paused.
func (q *Scheduler) Waited(l *Lease) bool {
	if !q.lock(l) {
		return false
	}
	defer q.mu.Unlock()
	if l.line == nil { // an attempt is in flight
		return l.sent.After(l.ready)
	}
	return l.line != &q.later
}

// Waits is called when the attempt in flight for l waits for another write of the same lock.
// Waits frees the attempt's slot, so that other leases do not wait for that write.
func (q *Scheduler) Waits(l *Lease) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.move(l, none)
	q.sendDue(time.Now())
}

// sendDue sends attempts for the leases that are due, as many as the slots and the pace allow.
// It sets the timer for the remaining leases. The caller must hold q.mu.
func (q *Scheduler) sendDue(now time.Time) {
	for l := q.later.first(); l != nil && !l.due.After(now); l = q.later.first() {
		l.leaveLine()
		l.ready = now
		if l.doubtful {
			q.doubtful.add(l)
		} else {
			q.sure.add(l)
		}
	}
	for l := q.choose(); l != nil && !q.next.After(now); l = q.choose() {
		q.begin(l, now)
	}
	q.setTimer(now)
}

// choose returns the lease to renew next. It returns nil if no lease is due, or if no slot is free
// for a lease that is due. It does not check the pace. The caller must hold q.mu.
func (q *Scheduler) choose() *Lease {
	inPlaces := q.taken[ordinary] + q.taken[unsure]
	if inPlaces >= q.most || inPlaces+q.taken[hanging] >= 4*q.most {
		return nil
	}
	sure, doubtful := q.sure.first(), q.doubtful.first()
	switch {
	case doubtful == nil || q.taken[unsure] >= q.most/2:
		return sure
	case sure == nil:
		return doubtful
	case q.pace != decide.Pace{} && q.others < othersFirst:
		return sure
	case byTrust(doubtful, sure):
		return doubtful
	}
	return sure
}

// begin sends an attempt to renew l, on a goroutine of its own. The caller must hold q.mu.
func (q *Scheduler) begin(l *Lease, now time.Time) {
	l.leaveLine()
	l.sent = now
	l.place = ordinary
	q.others++
	if l.doubtful {
		l.place = unsure
		q.others = 0
	}
	q.taken[l.place]++
	if gap := q.pace.Gap(); gap > 0 {
		if behind := now.Add(-burst); q.next.Before(behind) {
			q.next = behind
		}
		q.next = q.next.Add(gap)
	}
	keepPlace := max(decide.RenewalDeadline(l.ends.Sub(now)), burst) / 4
	l.hang = time.AfterFunc(keepPlace, func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		if l.sent.Equal(now) && (l.place == ordinary || l.place == unsure) {
			q.move(l, hanging)
			q.sendDue(time.Now())
		}
	})
	q.run(func() { q.ended(l, l.send()) })
}

// move moves the attempt in flight for l to another kind of slot. The caller must hold q.mu.
func (q *Scheduler) move(l *Lease, to place) {
	q.taken[l.place]--
	l.place = to
	q.taken[to]++
}

// ended is called when an attempt to renew l has finished with the outcome out. It frees the slot,
// and schedules the next attempt.
func (q *Scheduler) ended(l *Lease, out Outcome) {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := time.Now()
	l.hang.Stop()
	q.move(l, none)
	q.taken[none]--
	at, sent := now.Sub(q.origin), l.sent.Sub(q.origin)
	switch out {
	case Renewed:
		q.pace = q.pace.Succeeded(q.demand, at)
	case Throttled:
		q.pace = q.pace.Throttled(q.demand, sent, at)
	}
	if !l.removed {
		if out != Renewed { // Over is treated like a failure: the caller is about to remove the lease
			var pause time.Duration // stays zero after a first conflict, because the conflicting write has ended
			if out != Conflict || l.failures > 0 {
				pause = decide.RenewalRetry(l.failures, l.times.Every, l.ends.Sub(now), q.chance())
			}
			l.due = now.Add(pause)
			l.doubtful = out == Silent || out == Throttled
			l.displaced = true
			l.failures++
		}
		q.later.add(l)
	}
	q.sendDue(now)
}

// setTimer sets the timer for the next call of sendDue: to the time when the next lease becomes
// due, or to the time when the pace allows an attempt for which a due lease waits, whichever is
// earlier. The caller must hold q.mu.
func (q *Scheduler) setTimer(now time.Time) {
	at := time.Time{}
	if l := q.later.first(); l != nil {
		at = l.due
	}
	if q.choose() != nil && (at.IsZero() || q.next.Before(at)) {
		at = q.next
	}
	if q.timer != nil {
		q.timer.Stop()
	}
	if !at.IsZero() {
		q.timer = time.AfterFunc(at.Sub(now), q.tick)
	}
}

func (q *Scheduler) tick() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.sendDue(time.Now())
}
