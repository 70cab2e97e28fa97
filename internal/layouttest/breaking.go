package layouttest

import (
	"errors"
	"strings"

	"github.com/leasehold-go/leasehold"
)

func breakChecks() []check {
	return []check{
		{claim: "a break frees the grant that was read, renewed or not", hold: breakOurs},
		{claim: "a break does not change the next grant", hold: breakStale},
		{claim: "a break with IfUnrenewed does not change a renewed grant", hold: breakUnrenewed},
		{claim: "the record shows who broke the grant, when and why", hold: breakTold},
		{claim: "a break frees a peer's grant", hold: breakPeer},
		{claim: "a break of a peer's grant does not change our grant", hold: breakOursForPeer},
		{claim: "a break of a peer's grant does not change the next peer's grant", hold: breakOtherPeer},
	}
}

func breakOurs(e *env) {
	a, _ := e.client()
	op, _ := e.client()
	lock := e.acquire(a, leasehold.WithoutRenewal())
	r := e.get(op)
	if err := lock.Renew(e.within(patience)); err != nil {
		e.Fatal(err)
	}
	if err := op.Break(e.within(patience), r, leasehold.BreakOptions{}); err != nil {
		e.Fatal(err)
	}
	if item := e.item(); !e.isFree(item) {
		e.Errorf("left %v", describe(item))
	}
	e.lost(lock, leasehold.LostBroken)
	err := op.Break(e.within(patience), r, leasehold.BreakOptions{})
	if !errors.Is(err, leasehold.ErrChanged) && !errors.Is(err, leasehold.ErrNotFound) {
		e.Errorf("broken twice: %v", err)
	}
}

func breakTold(e *env) {
	a, _ := e.client()
	op, _ := e.client()
	lock := e.acquire(a, leasehold.WithoutRenewal())
	keeps := e.caps().KeepOnRelease
	before := e.item()
	switch err := op.Break(e.within(patience), e.get(op), leasehold.BreakOptions{Reason: "stuck"}); {
	case !keeps:
		if !errors.Is(err, errors.ErrUnsupported) {
			e.Errorf("a reason that no record can keep: %v", err)
		}
		e.unchanged(before, "a break with a reason that no record keeps")
		e.release(lock)
		return
	case err != nil:
		e.Fatal(err)
	}
	next := e.acquire(op)
	b := e.get(a).Broken
	if b == nil || b.By == "" || b.At.IsZero() || b.Reason != "stuck" || b.Token != lock.Token() {
		e.Errorf("the record of the next grant: %+v", b)
	}
	if err := lock.Renew(e.within(patience)); !errors.Is(err, leasehold.ErrLost) || !strings.Contains(err.Error(), ": stuck") {
		e.Errorf("the holder: %v", err)
	}
	e.release(next)
	e.release(e.acquire(op))
	if b := e.get(a).Broken; b == nil || b.Reason != "stuck" {
		e.Errorf("after two more grants: %+v", b)
	}
}

func breakStale(e *env) {
	a, _ := e.client()
	lock := e.acquire(a)
	r := e.get(a)
	e.release(lock)
	next := e.acquire(a)
	before := e.item()
	if err := a.Break(e.within(patience), r, leasehold.BreakOptions{}); !errors.Is(err, leasehold.ErrChanged) {
		e.Errorf("error %v", err)
	}
	e.unchanged(before, "a break of another grant")
	e.release(next)
}

func breakUnrenewed(e *env) {
	a, _ := e.client()
	lock := e.acquire(a, leasehold.WithoutRenewal())
	r := e.get(a)
	if err := lock.Renew(e.within(patience)); err != nil {
		e.Fatal(err)
	}
	before := e.item()
	if err := a.Break(e.within(patience), r, leasehold.BreakOptions{IfUnrenewed: true}); !errors.Is(err, leasehold.ErrChanged) {
		e.Errorf("error %v", err)
	}
	e.unchanged(before, "a break of a renewed grant")
	if err := a.Break(e.within(patience), e.get(a), leasehold.BreakOptions{IfUnrenewed: true}); err != nil {
		e.Error(err)
	}
	if item := e.item(); !e.isFree(item) {
		e.Errorf("left %v", describe(item))
	}
}

func breakPeer(e *env) {
	c, _ := e.client()
	e.put(e.granted(e.key, "a-peer", patience))
	if err := c.Break(e.within(patience), e.get(c), leasehold.BreakOptions{}); err != nil {
		e.Fatal(err)
	}
	if item := e.item(); !e.isFree(item) {
		e.Errorf("left %v", describe(item))
	}
	e.release(e.acquire(c))
}

func breakOursForPeer(e *env) {
	c, _ := e.client()
	e.put(e.granted(e.key, "a-peer", patience))
	r := e.get(c)
	e.remove()
	lock := e.acquire(c)
	before := e.item()
	if err := c.Break(e.within(patience), r, leasehold.BreakOptions{}); !errors.Is(err, leasehold.ErrChanged) {
		e.Errorf("error %v", err)
	}
	e.unchanged(before, "a break of a peer's grant")
	e.release(lock)
}

// breakOtherPeer checks that a break of one peer's grant does not change the next peer's grant. A
// break must not identify a grant by its owner alone: some records have no owner, and several peers
// may have the same owner name.
func breakOtherPeer(e *env) {
	c, _ := e.client()
	e.put(e.granted(e.key, "a-peer", patience))
	r := e.get(c)
	next := "another-peer"
	if e.isByClock() {
		next = "a-peer" // peers of this layout never renew, so a different expiry time means a different grant
	}
	e.put(e.granted(e.key, next, patience+e.step()))
	before := e.item()
	var changed *leasehold.ChangedError
	if err := c.Break(e.within(patience), r, leasehold.BreakOptions{}); !errors.As(err, &changed) || changed.Now.Version == r.Version {
		e.Errorf("error %v", err)
	}
	e.unchanged(before, "a break of another peer's grant")
}
