package layouttest

import (
	"errors"

	"github.com/leasehold-go/leasehold"
)

func releaseChecks() []check {
	return []check{
		{claim: "a released record is free for a peer", hold: leavesFree},
		{claim: "a release with DeleteOnRelease deletes the record", hold: deletes},
		{claim: "a lost lock does not change a later grant of ours", hold: staleByOurs},
		{claim: "a lost lock does not change a later grant of a peer", hold: staleByPeer},
		{claim: "a lock that a peer has freed is lost", hold: freedUnderOurs},
		{claim: "a second release does nothing", hold: releasedTwice},
		{claim: "another process resumes a detached grant only once", hold: resumed},
	}
}

// isFree reports whether item, the record of a key, is nil or marked as released. A peer, which is
// a client of the layout's lock library, would acquire such a key immediately.
func (e *env) isFree(item Item) bool {
	return item == nil || textOf(item["isReleased"]) == "1" || textOf(item["holder"]) == "__empty__" && numberOf(item["expire_ts"]) == "0"
}

func leavesFree(e *env) {
	c, _ := e.client()
	e.release(e.acquire(c))
	item := e.item()
	if !e.isFree(item) || (item != nil) != e.caps().KeepOnRelease {
		e.Errorf("left %v", describe(item))
	}
	if item == nil {
		return
	}
	if r := e.get(c); !r.Released || r.Key.Partition != e.key {
		e.Errorf("read as %+v", r)
	}
	if has := e.ttl != "" && item[e.ttl] != nil; has != e.caps().TTL {
		e.Errorf("the kept record has a TTL time: %v; the layout has a TTL: %v", has, e.caps().TTL)
	}
}

func deletes(e *env) {
	c, _ := e.client()
	e.release(e.acquire(c), leasehold.DeleteOnRelease(true))
	if item := e.item(); item != nil {
		e.Errorf("left %v", describe(item))
	}
}

// lost checks that Release returns a lost-lock error with the given reason, and does not change
// the record.
func (e *env) lost(lock *leasehold.Lock, reason leasehold.LostReason) {
	e.Helper()
	before := e.item()
	err := lock.Release(e.within(patience))
	var lost *leasehold.LostError
	if !errors.As(err, &lost) || lost.Reason != reason {
		e.Errorf("the stale handle's release: %v, want %s", err, reason)
	}
	e.unchanged(before, "the release of a stale handle")
}

// eachWay runs a check twice, because a holder can discover the loss of its lock in two ways. The
// check calls "find" with the lost lock and the expected reason. The function "find" calls Release
// in the first run, and Renew in the second.
func (e *env) eachWay(test func(find func(*leasehold.Lock, leasehold.LostReason))) {
	test(e.lost)
	test(func(lock *leasehold.Lock, reason leasehold.LostReason) {
		e.Helper()
		before := e.item()
		err := lock.Renew(e.within(patience))
		var lost *leasehold.LostError
		if !errors.As(err, &lost) || lost.Reason != reason {
			e.Errorf("the stale handle's renewal: %v, want %s", err, reason)
		}
		if !errors.Is(lock.Err(), leasehold.ErrLost) {
			e.Errorf("the stale handle: %v", lock.Err())
		}
		e.unchanged(before, "the renewal of a stale handle")
		e.lost(lock, reason)
	})
}

func staleByOurs(e *env) {
	a, _ := e.client()
	b, _ := e.client()
	e.eachWay(func(find func(*leasehold.Lock, leasehold.LostReason)) {
		stale := e.acquire(a, leasehold.WithoutRenewal())
		if err := b.Break(e.within(patience), stale.Record(), leasehold.BreakOptions{}); err != nil {
			e.Fatal(err)
		}
		next := e.acquire(b)
		find(stale, leasehold.LostReplaced)
		if err := next.Err(); err != nil {
			e.Error(err)
		}
		e.release(next)
	})
}

func staleByPeer(e *env) {
	a, _ := e.client()
	e.eachWay(func(find func(*leasehold.Lock, leasehold.LostReason)) {
		stale := e.acquire(a, leasehold.WithoutRenewal())
		e.put(e.granted(e.key, "a-peer", patience))
		find(stale, leasehold.LostReplaced)
		e.remove()
	})
}

func freedUnderOurs(e *env) {
	a, _ := e.client()
	e.eachWay(func(find func(*leasehold.Lock, leasehold.LostReason)) {
		stale := e.acquire(a, leasehold.WithoutRenewal())
		e.free()
		find(stale, leasehold.LostBroken)
	})
}

// free frees the key without the holder's knowledge. This imitates an operator who edits the table
// by hand, or a client that releases the lock of another client by mistake.
func (e *env) free() {
	e.Helper()
	switch free := e.peer.freed; {
	case free == nil:
		e.remove()
	case free("")["isReleased"] != nil:
		e.put(with(e.item(), Item{"isReleased": text("1")}))
	default:
		e.put(e.record(e.key, free("")))
	}
}

func releasedTwice(e *env) {
	a, _ := e.client()
	b, _ := e.client()
	lock := e.acquire(a)
	e.release(lock)
	next := e.acquire(b)
	before := e.item()
	if err := lock.Release(e.within(patience)); err != nil {
		e.Error(err)
	}
	e.unchanged(before, "a second release")
	e.release(next)
}

func resumed(e *env) {
	a, _ := e.client()
	b, _ := e.client()
	lock := e.acquire(a)
	g, err := lock.Detach()
	if err != nil {
		e.Fatal(err)
	}
	again, err := b.Resume(e.within(patience), g)
	if err != nil {
		e.Fatal(err)
	}
	if again.Token() != lock.Token() {
		e.Errorf("token %d after resume, %d before", again.Token(), lock.Token())
	}
	if _, err := a.Resume(e.within(patience), g); !errors.Is(err, leasehold.ErrLost) {
		e.Errorf("resumed twice: %v", err)
	}
	e.release(again)
}
