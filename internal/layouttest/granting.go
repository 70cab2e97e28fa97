package layouttest

import (
	"errors"
	"slices"

	"github.com/leasehold-go/leasehold"
)

func grantChecks() []check {
	return []check{
		{claim: "a free key is granted and released in two requests", hold: twoRequests},
		{claim: "TryAcquire of a held key returns the holder in one request", hold: refused},
		{claim: "TryAcquire of a key that a peer holds returns the peer as the holder", hold: refusedByPeer},
		{claim: "a key that a peer has freed is granted in one request", hold: freedByPeer},
		{claim: "each grant has a higher token than the grant before", hold: tokensGrow},
		{claim: "IfExists acquires only an existing record", hold: ifExists},
	}
}

func twoRequests(e *env) {
	c, w := e.client()
	// The first grant creates the record. If the layout keeps records on release, the later
	// grants find the kept record.
	for i := range 3 {
		e.release(e.acquire(c))
		if ops := w.sent(); len(ops) != 2 || slices.Contains(ops, "GetItem") {
			e.Errorf("round %d: sent %v", i, ops)
		}
	}
}

func refused(e *env) {
	a, _ := e.client()
	b, w := e.client()
	lock := e.acquire(a)
	_, err := b.TryAcquire(e.Context(), e.key)
	var held *leasehold.HeldError
	if !errors.As(err, &held) {
		e.Fatalf("error %v", err)
	}
	if ops := w.sent(); len(ops) != 1 {
		e.Errorf("sent %v", ops)
	}
	got, want := held.Holder, lock.Record()
	if got.Key != lock.Key() || got.Grant != want.Grant || got.Token != lock.Token() || got.Owner != want.Owner || got.Released {
		e.Errorf("shows %+v, want %+v", got, want)
	}
	e.release(lock)
}

func refusedByPeer(e *env) {
	c, _ := e.client()
	e.put(e.granted(e.key, "a-peer", patience))
	before := e.item()
	_, err := c.TryAcquire(e.Context(), e.key)
	var held *leasehold.HeldError
	if !errors.As(err, &held) {
		e.Fatalf("error %v", err)
	}
	if r := held.Holder; r.Token != 0 || r.Grant != "" || r.Version == "" || r.Owner != e.peer.owner("a-peer") || r.Released {
		e.Errorf("shows %+v", r)
	}
	e.unchanged(before, "a refusal")
}

func freedByPeer(e *env) {
	if e.peer.freed != nil {
		e.put(e.record(e.key, e.peer.freed("a-peer")))
	}
	c, w := e.client()
	lock := e.acquire(c)
	if ops := w.sent(); len(ops) != 1 {
		e.Errorf("sent %v", ops)
	}
	if _, took := lock.TookOver(); took {
		e.Error("the grant is reported as a takeover")
	}
	e.release(lock)
}

func tokensGrow(e *env) {
	a, _ := e.client()
	b, _ := e.client()
	var last int64
	for i, c := range []*leasehold.Client{a, b, a} {
		lock := e.acquire(c)
		if lock.Token() <= last || i > 0 && e.caps().FencingSurvivesRelease && lock.Token() != last+1 {
			e.Errorf("token %d after %d", lock.Token(), last)
		}
		last = lock.Token()
		e.release(lock)
	}
}

func ifExists(e *env) {
	c, _ := e.client()
	if _, err := c.Acquire(e.within(patience), e.key, leasehold.IfExists()); !errors.Is(err, leasehold.ErrNotFound) {
		e.Errorf("without a record: %v", err)
	}
	e.release(e.acquire(c))
	if !e.caps().KeepOnRelease {
		return
	}
	e.release(e.acquire(c, leasehold.IfExists()))
}
