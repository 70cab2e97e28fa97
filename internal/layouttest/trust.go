package layouttest

import (
	"time"

	"github.com/leasehold-go/leasehold"
)

func trustChecks() []check {
	return []check{
		{claim: "trust ends before the lease by the margin and the skew", hold: trustOfGrant},
		{claim: "the lease in the record is never shorter than requested", hold: leaseAsAsked},
		{claim: "a lease may last forever", hold: forEver},
	}
}

// trusted checks that the holder stops trusting its lock before other clients may take the lock
// over. The holder sent its request for the given lease between the two given times.
func (e *env) trusted(lock *leasehold.Lock, lease time.Duration, before, after time.Time) {
	e.Helper()
	keep := lease/10 + e.skew
	if until := lock.TrustedUntil(); until.After(after.Add(lease - keep + time.Millisecond)) {
		e.Errorf("a lease of %v is trusted for %v, but trust must end %v before it", lease, until.Sub(after), keep)
	}
	until := e.peer.until(e.item(), before)
	if until.Before(before.Add(lease)) {
		e.Errorf("requested a lease of %v, but a peer waits for %v", lease, until.Sub(before))
	}
	if most := after.Add(lease + 2*e.step()); until.After(most) {
		e.Errorf("requested a lease of %v, but a peer waits for %v", lease, until.Sub(after))
	}
}

func trustOfGrant(e *env) {
	c, _ := e.client()
	const lease = 20 * time.Second
	before := time.Now()
	lock := e.acquire(c, leasehold.WithoutRenewal())
	e.trusted(lock, lease, before, time.Now())

	const longer = 31 * time.Second
	before = time.Now()
	if err := lock.Renew(e.within(patience), leasehold.WithLease(longer)); err != nil {
		e.Fatal(err)
	}
	e.trusted(lock, longer, before, time.Now())
	e.release(lock)
}

// leaseAsAsked checks that leasehold lacks a fault of dynamo-dlm, which cuts leases down to
// whole seconds.
func leaseAsAsked(e *env) {
	c, _ := e.client()
	for _, lease := range []time.Duration{e.short() + time.Nanosecond, e.short() + 500*time.Millisecond, 7*time.Second + 999_999_999} {
		before := time.Now()
		lock := e.acquire(c, leasehold.WithLease(lease), leasehold.WithoutRenewal())
		e.trusted(lock, lease, before, time.Now())
		_ = lock.Release(e.within(patience)) // on a busy machine, the lock may have expired
	}
}

func forEver(e *env) {
	c, _ := e.client()
	const lease = 1<<63 - 1
	lock := e.acquire(c, leasehold.WithLease(lease))
	if left := time.Until(lock.TrustedUntil()); left < 100*365*24*time.Hour/2 {
		e.Errorf("trusted for %v", left)
	}
	if until := e.peer.until(e.item(), time.Now()); time.Until(until) < 100*365*24*time.Hour/2 {
		e.Errorf("a peer waits for %v", time.Until(until))
	}
	if r := e.get(c); r.Grant != lock.Record().Grant {
		e.Errorf("read as %+v", r)
	}
	e.release(lock)
}
