package layouttest

import (
	"errors"
	"testing/synctest"
	"time"

	"github.com/leasehold-go/leasehold"
)

func deadChecks() []check {
	return []check{
		{claim: "a dead holder's key is taken over by the layout's rule", hold: deadHolder},
		{claim: "a dead peer's key is taken over by the layout's rule", hold: deadPeer},
		{claim: "the record shows the former holder until the next release", hold: formerHolder},
		{claim: "TryAcquire takes over only a record that has expired by every clock", hold: expired, exact: true},
		{claim: "TryAcquire takes over a key that the client has observed for the length of a lease", hold: watched, exact: true},
		{claim: "a peer that renews is not taken over", hold: renewingPeer, exact: true},
		{claim: "a lock is lost before another client may acquire the key", hold: lostFirst, exact: true},
	}
}

func deadHolder(e *env) {
	a, _ := e.client()
	b, _ := e.client()
	lock := e.acquire(a, leasehold.WithLease(e.short()), leasehold.WithoutRenewal())
	until := lock.TrustedUntil()
	if _, err := lock.Detach(); err != nil { // detached, so that the client does not release the lock
		e.Fatal(err)
	}
	got := e.succeeds(b)
	if got.at.Before(until) {
		e.Errorf("granted %v before the trust of the holder ended", until.Sub(got.at))
	}
	if r, took := got.lock.TookOver(); !took || r.Grant != lock.Record().Grant {
		e.Errorf("took over %+v, %v", r, took)
	}
	if got.lock.Token() != lock.Token()+1 {
		e.Errorf("token %d after %d", got.lock.Token(), lock.Token())
	}
	e.release(got.lock)
}

func deadPeer(e *env) {
	c, _ := e.client()
	e.put(e.granted(e.key, "a-peer", e.short()))
	got := e.succeeds(c)
	if r, took := got.lock.TookOver(); !took || r.Owner != e.peer.owner("a-peer") || r.Version == "" {
		e.Errorf("took over %+v, %v", r, took)
	}
	e.release(got.lock)
}

func formerHolder(e *env) {
	a, _ := e.client()
	b, _ := e.client()
	lock := e.acquire(a, leasehold.WithLease(e.short()), leasehold.WithoutRenewal())
	owner := lock.Record().Owner
	if _, err := lock.Detach(); err != nil { // detached, so that the client does not release the lock
		e.Fatal(err)
	}
	if f := e.get(b).Former; f != nil {
		e.Errorf("before the first takeover: %+v", f)
	}
	got := e.succeeds(b)
	r := e.get(a)
	if !e.caps().KeepOnRelease {
		if r.Former != nil {
			e.Errorf("a layout that deletes records shows %+v", r.Former)
		}
		e.release(got.lock)
		return
	}
	f := r.Former
	if f == nil || f.Owner != owner || f.Token != lock.Token() || f.How != "taken over" || f.At.Before(lock.TrustedUntil()) {
		e.Errorf("after the takeover: %+v", f)
	}
	if len(r.Attributes) > 0 {
		e.Errorf("a caller sees %v", r.Attributes)
	}
	e.release(got.lock)
	if f := e.get(a).Former; f != nil && (f.How != "released" || f.Token != got.lock.Token()) {
		e.Errorf("after the release: %+v", f)
	}
	next := e.acquire(a)
	if f := e.get(a).Former; f != nil {
		e.Errorf("after another grant: %+v", f)
	}
	e.release(next)
}

// The method "succeeds" waits until c has taken over the key from a dead holder, and returns the
// new grant. It checks that c does not take over too early, and also not too late if time is
// virtual.
func (e *env) succeeds(c *leasehold.Client) granted {
	e.Helper()
	// Client c has not read the record before. So in a layout without expiry times, c must
	// observe the record for a whole lease from now on.
	dead := e.peer.until(e.item(), time.Now())
	if e.isByClock() {
		dead = dead.Add(e.skew)
	}
	got := <-e.waiter(c)
	if got.err != nil {
		e.Fatal(got.err)
	}
	if early := dead.Sub(got.at); early > 0 {
		e.Errorf("taken over %v too early", early)
	}
	late := got.at.Sub(dead)
	if e.isByClock() {
		late -= e.step()
	}
	if e.on.Virtual && late > 10*time.Millisecond {
		e.Errorf("taken over %v too late", late)
	}
	return got
}

func expired(e *env) {
	if !e.isByClock() {
		return // skipped, because records of this layout have no expiry time
	}
	c, _ := e.client()
	for _, of := range []struct {
		ago  time.Duration
		dead bool
	}{
		{-time.Hour, false}, {-e.step(), false}, {0, false}, {e.skew, false},
		{e.skew + e.step(), true}, {time.Hour, true}, {20 * 365 * 24 * time.Hour, true},
	} {
		// Each round starts at a whole second, so that rounding does not change the expiry
		// time.
		time.Sleep(time.Until(time.Now().Truncate(time.Second).Add(time.Second)))
		e.put(e.granted(e.key, "a-peer", -of.ago))
		lock, err := c.TryAcquire(e.Context(), e.key)
		switch {
		case of.dead && err != nil:
			e.Errorf("expired %v ago: %v", of.ago, err)
		case !of.dead && !errors.Is(err, leasehold.ErrHeld):
			e.Errorf("expired %v ago: granted, or %v", of.ago, err)
		}
		if lock != nil {
			e.release(lock)
		}
	}
}

func watched(e *env) {
	const lease = 20 * time.Second
	c, _ := e.client()
	e.put(e.granted(e.key, "a-peer", lease))
	if _, err := c.TryAcquire(e.Context(), e.key); !errors.Is(err, leasehold.ErrHeld) {
		e.Fatalf("error %v", err)
	}
	time.Sleep(lease - time.Millisecond)
	if _, err := c.TryAcquire(e.Context(), e.key); !errors.Is(err, leasehold.ErrHeld) {
		e.Fatalf("a millisecond before: %v", err)
	}
	time.Sleep(e.skew + e.step() + time.Second)
	lock, err := c.TryAcquire(e.Context(), e.key)
	if err != nil {
		e.Fatal(err)
	}
	e.release(lock)
}

func renewingPeer(e *env) {
	b, _ := e.client()
	e.put(e.granted(e.key, "a-peer", 20*time.Second))
	next := e.waiter(b)
	for range 6 {
		time.Sleep(15 * time.Second)
		// The peer renews: the item has a new version or a new expiry time.
		e.put(e.granted(e.key, "a-peer", 20*time.Second))
	}
	synctest.Wait()
	select {
	case got := <-next:
		e.Fatalf("granted: %+v", got)
	default:
	}
	got := <-next
	if got.err != nil {
		e.Fatal(got.err)
	}
	e.release(got.lock)
}

func lostFirst(e *env) {
	a, _ := e.client()
	b, _ := e.client()
	lock := e.acquire(a, leasehold.WithoutRenewal())
	expires := e.peer.until(e.item(), time.Now())
	next := e.waiter(b)
	<-lock.Context().Done()
	lost := time.Now()
	if !errors.Is(lock.Err(), leasehold.ErrLost) {
		e.Errorf("ended by %v", lock.Err())
	}
	const margin = 2 * time.Second
	if left := expires.Sub(lost); left < margin+e.skew {
		e.Errorf("lost %v before a peer with the same clock takes over, want %v", left, margin+e.skew)
	}
	got := <-next
	if got.err != nil {
		e.Fatal(got.err)
	}
	if !lost.Before(got.at) {
		e.Errorf("lost at %v, granted to another client at %v", lost, got.at)
	}
	e.release(got.lock)
}
