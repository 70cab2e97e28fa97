package renewals

import (
	"sync"
	"time"

	"github.com/leasehold-go/leasehold/internal/decide"
)

// Queue holds the leases of a client. It is safe for concurrent use, and calls
// none of its functions while it is locked but chance and run.
type Queue struct {
	most   int            // places
	run    func(func())   // begins a goroutine
	chance func() float64 // in [0,1)
	origin time.Time      // of the pace's clock

	mu       sync.Mutex // guards what follows
	later    line       // not due yet
	sure     line       // due
	doubtful line       // due, but doubtful
	others   int        // sent since the last of the doubtful
	taken    [hanging + 1]int
	added    int
	demand   decide.Demand
	pace     decide.Pace
	next     time.Time // when the pace lets one go
	timer    *time.Timer
}

// burst is how far behind its pace a queue may be to make up for it.
const burst = 50 * time.Millisecond

// late is the part of a period by which an attempt must come too late to be
// out of its place: those that come less late are no more than fit there.
const late = 50

// othersFirst is how many leases are sent at a pace before a doubtful one.
const othersFirst = 4

// New returns a queue that sends at most that many attempts at a time, each in
// a goroutine begun by run.
func New(most int, run func(func()), chance func() float64) *Queue {
	return &Queue{
		most: most, run: run, chance: chance, origin: time.Now(),
		later: line{before: byDue}, sure: line{before: byTrust}, doubtful: line{before: byTrust},
	}
}

// Add begins to renew a lease of which that much trust is left. Each attempt
// is one call of send.
func (q *Queue) Add(t Times, left time.Duration, send func() Outcome) *Lease {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := time.Now()
	q.added++
	// Those granted together are in their places after the second renewal.
	l := &Lease{send: send, times: t, number: q.added, ends: now.Add(left), displaced: true}
	l.due = now.Add(decide.FirstRenewal(t.Every, left, q.chance()))
	q.demand = q.demand.Add(t.Every, t.Trust)
	q.later.add(l)
	q.turn(now)
	return l
}

// Remove ends the renewals of a lease. An attempt that is under way is not
// waited for.
func (q *Queue) Remove(l *Lease) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if l.state == removed {
		return
	}
	q.takeOut(l)
	l.state = removed
	q.demand = q.demand.Remove(l.times.Every, l.times.Trust)
	q.turn(time.Now())
}

// Renewed makes the next renewal due of a lease that was renewed by an attempt
// that took that long, whoever sent it, and of which that much trust is left.
func (q *Queue) Renewed(l *Lease, t Times, took, left time.Duration) {
	q.change(l, t, left, func(now time.Time) {
		l.displaced = l.displaced || l.state == sending && l.sent.Sub(l.due) > t.Every/late
		l.due = now.Add(decide.NextRenewal(t.Every, took, left, l.displaced, q.chance()))
		l.displaced, l.doubtful, l.failures = false, false, 0
	})
}

// Lasts says how much trust is left of a lease, if that is less than it seemed,
// or more though no renewal has landed.
func (q *Queue) Lasts(l *Lease, left time.Duration) {
	q.change(l, l.times, left, func(now time.Time) {
		if due := now.Add(max(left, 0) / 3); due.Before(l.due) {
			l.due = due
		}
	})
}

// change lets a lease take the place in line that it has after change.
func (q *Queue) change(l *Lease, t Times, left time.Duration, change func(now time.Time)) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if l.state == removed {
		return
	}
	now := time.Now()
	q.takeOut(l)
	q.demand = q.demand.Remove(l.times.Every, l.times.Trust).Add(t.Every, t.Trust)
	l.times, l.ends = t, now.Add(left)
	change(now)
	if l.state != sending {
		q.putLater(l)
	}
	q.turn(now)
}

// takeOut takes a lease out of the line it stands in, if any.
func (q *Queue) takeOut(l *Lease) {
	switch l.state {
	case later:
		q.later.remove(l)
	case ready:
		q.due(l).remove(l)
	}
}

func (q *Queue) putLater(l *Lease) {
	l.state = later
	q.later.add(l)
}

// due is the line of a lease that is due. It does not change while the lease
// stands in it.
func (q *Queue) due(l *Lease) *line {
	if l.doubtful {
		return &q.doubtful
	}
	return &q.sure
}

// Waited reports whether the lease has been due and others were sent before it.
// What has become due this very moment has not waited: it may be that nothing
// ran here until now.
func (q *Queue) Waited(l *Lease) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return l.state == ready || l.state == sending && l.sent.After(l.ready)
}

// Waits gives up the place of the attempt under way: it waits for another
// write of the same lock, which is nothing that others should wait for.
func (q *Queue) Waits(l *Lease) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.vacate(l, none)
	q.turn(time.Now())
}

// turn sends what is due as far as there are places and the pace allows it, and
// sets the timer for the rest. q.mu is held.
func (q *Queue) turn(now time.Time) {
	for l := q.later.first(); l != nil && !l.due.After(now); l = q.later.first() {
		q.later.remove(l)
		l.state, l.ready = ready, now
		q.due(l).add(l)
	}
	for l := q.choose(); l != nil && !q.next.After(now); l = q.choose() {
		q.begin(l, now)
	}
	q.arm(now)
}

// choose returns the lease that is to be sent next, nil if there is none or no
// place for it.
func (q *Queue) choose() *Lease {
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
	case q.pace != decide.Pace{} && q.others < othersFirst: // it is the pace that is scarce
		return sure
	case byTrust(doubtful, sure):
		return doubtful
	}
	return sure
}

// begin sends a lease's attempt. q.mu is held.
func (q *Queue) begin(l *Lease, now time.Time) {
	q.due(l).remove(l)
	l.state, l.sent = sending, now
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
	keeps := max(decide.RenewalDeadline(l.ends.Sub(now)), burst) / 4
	sent := now
	l.hang = time.AfterFunc(keeps, func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		if l.sent.Equal(sent) && (l.place == ordinary || l.place == unsure) {
			q.vacate(l, hanging)
			q.turn(time.Now())
		}
	})
	q.run(func() { q.ended(l, l.send()) })
}

// vacate gives up the place of the attempt under way for another. q.mu is held.
func (q *Queue) vacate(l *Lease, to place) {
	q.taken[l.place]--
	l.place = to
	q.taken[to]++
}

// ended takes what an attempt came to.
func (q *Queue) ended(l *Lease, out Outcome) {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := time.Now()
	l.hang.Stop()
	q.vacate(l, none)
	q.taken[none]--
	at, sent := now.Sub(q.origin), l.sent.Sub(q.origin)
	switch out {
	case Renewed:
		q.pace = q.pace.Landed(q.demand, at)
	case Throttled:
		q.pace = q.pace.Throttled(q.demand, sent, at)
	}
	if l.state != removed {
		if out == Over {
			out = Failed // it is about to be removed
		}
		if out != Renewed {
			l.due = now.Add(q.retryAfter(l, out, now))
			l.doubtful = out == Silent || out == Throttled
			l.displaced = true
			l.failures++
		}
		q.putLater(l)
	}
	q.turn(now)
}

func (q *Queue) retryAfter(l *Lease, out Outcome, now time.Time) time.Duration {
	if out == Conflict && l.failures == 0 {
		return 0 // once at once: a conflict has passed as soon as it is told
	}
	return decide.RenewalRetry(l.failures, l.times.Every, l.ends.Sub(now), q.chance())
}

// arm sets the timer for the next turn that no event brings. q.mu is held.
func (q *Queue) arm(now time.Time) {
	at := time.Time{}
	if l := q.later.first(); l != nil {
		at = l.due
	}
	if q.choose() != nil && (at.IsZero() || q.next.Before(at)) {
		at = q.next
	}
	switch {
	case at.IsZero():
		if q.timer != nil {
			q.timer.Stop()
		}
	case q.timer == nil:
		q.timer = time.AfterFunc(at.Sub(now), q.tick)
	default:
		q.timer.Reset(at.Sub(now))
	}
}

func (q *Queue) tick() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.turn(time.Now())
}
