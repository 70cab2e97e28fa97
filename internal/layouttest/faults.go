package layouttest

import (
	"context"
	"errors"
	"slices"

	"github.com/leasehold-go/leasehold"
)

// faultChecks returns the checks for known faults of five other lock libraries. Leasehold must
// have none of these faults.
func faultChecks() []check {
	return []check{
		{claim: "a caller's attribute cannot free the key", hold: reservedNames},
		{claim: "expiresAt is reserved only in layouts that use it", hold: ownNames},
		{claim: "a failed request is never a grant", hold: errorsAreNoGrants},
		{claim: "Do passes on the errors and panics of the caller's function", hold: passThrough},
		{claim: "a client can acquire a key after a failed TryAcquire", hold: triedAgain},
		{claim: "keys are equal only if both parts of the keys are equal", hold: identity},
		{claim: "a client sends only GetItem, UpdateItem and DeleteItem requests for one key", hold: onlyTheRecord},
	}
}

// reservedNames checks that leasehold rejects a caller's attribute if leasehold itself uses the
// name. In the libraries dynamolock and awslabs, a caller can store an attribute isReleased: then a
// second client can acquire the held key.
func reservedNames(e *env) {
	if !e.caps().Attributes {
		return // skipped, because this layout does not store attributes of callers
	}
	c, w := e.client()
	lock := e.acquire(c)
	w.sent()
	names := []string{
		e.partition, "grantId", "fencingToken", "grantedAt", "leaseEnds", "kind", "session", "waiters", "handed", "noQueueUntil", "lastBreak", "lastTakeover", "stepDown",
		"ownerName", "leaseDuration", "recordVersionNumber", "isReleased", "data",
	}
	if e.Layout.Name() == "python-dynamodb-lock" {
		names = append(names, "owner_name", "lease_duration", "record_version_number")
	} else {
		names = append(names, "expiresAt")
	}
	for _, name := range append(names, e.sort, e.ttl) {
		if name == "" {
			continue
		}
		attributes := leasehold.WithAttributes(Item{name: text("1")})
		if _, err := c.TryAcquire(e.Context(), e.key+"/other", attributes); err == nil {
			e.Errorf("acquired with an attribute %s", name)
		}
		if lock.Renew(e.Context(), attributes) == nil || lock.Release(e.Context(), attributes) == nil {
			e.Errorf("renewed or released with an attribute %s", name)
		}
	}
	if ops := w.sent(); len(ops) != 0 {
		e.Errorf("sent %v", ops)
	}
	e.release(lock)
}

// ownNames checks which layouts accept a caller's attribute named expiresAt. Layout native must
// refuse it: it is the TTL attribute. Layouts awslabs and dynamolock must refuse it: their grants
// remove it, so that TTL deletes no held record. Every other layout must store it.
func ownNames(e *env) {
	if !e.caps().Attributes {
		return // skipped, because this layout does not store attributes of callers
	}
	const name = "expiresAt"
	if name == e.partition || name == e.sort || name == e.ttl && e.Layout.Name() != "native" {
		return // skipped, because a key or TTL attribute of this table has that name
	}
	used := e.Layout.Name() != "python-dynamodb-lock"
	c, _ := e.client()
	mine := Item{name: text("of the user")}
	e.put(with(e.granted(e.key, "a-peer", patience), mine))
	if r, err := c.Get(e.within(patience), e.key); err != nil || (r.Attributes[name] == nil) != used {
		e.Errorf("reads as %+v, %v", r, err)
	}
	e.remove()
	lock, err := c.TryAcquire(e.within(patience), e.key, leasehold.WithAttributes(mine))
	if (err != nil) != used {
		e.Errorf("acquired with an attribute %s: %v", name, err)
	}
	if lock != nil {
		if kept := lock.Record().Attributes[name]; kept == nil || e.item()[name] == nil {
			e.Errorf("after the grant, the record is %v", e.item())
		}
		e.release(lock)
	}
}

// errorsAreNoGrants checks that leasehold lacks a fault of dyndb-mutex, which treats throttling,
// a reply with status 500 and denied access as a grant.
func errorsAreNoGrants(e *env) {
	a, _ := e.client()
	lock := e.acquire(a, leasehold.WithLease(10*patience), leasehold.WithoutRenewal())
	before := e.item()
	for _, what := range []fault{refuse, throttle, fail, drop, loseReply} {
		if what != refuse && !e.on.Virtual {
			continue // skipped: without virtual time, TryAcquire would take ten seconds for its retries
		}
		c, w := e.client()
		w.always(func(string) fault { return what })
		if _, err := c.TryAcquire(e.within(patience), e.key); err == nil {
			e.Errorf("%v: granted", what)
		}
		if n := len(c.Held()); n != 0 {
			e.Errorf("%v: holds %d locks", what, n)
		}
		w.always(nil)
	}
	e.unchanged(before, "failed requests")
	e.release(lock)
}

// passThrough checks that Do returns the error of its function, and does not swallow a panic. The
// library python_dynamodb_lock has a fault: a lock that is used in a "with" statement swallows the
// exceptions of the statement's body.
func passThrough(e *env) {
	c, _ := e.client()
	mine := errors.New("mine")
	if err := c.Do(e.within(patience), e.key, func(context.Context, *leasehold.Lock) error { return mine }); !errors.Is(err, mine) {
		e.Errorf("the function's error became %v", err)
	}
	func() {
		defer func() {
			if r, ok := recover().(error); !ok || !errors.Is(r, mine) {
				e.Errorf("the function's panic became %v", r)
			}
		}()
		_ = c.Do(e.within(patience), e.key, func(context.Context, *leasehold.Lock) error { panic(mine) })
	}()
	if item := e.item(); !e.isFree(item) {
		e.Errorf("left held: %v", describe(item))
	}
}

// triedAgain checks that leasehold lacks this fault of dynamo-dlm: a lock object that has
// failed to acquire a key cannot be used again.
func triedAgain(e *env) {
	a, _ := e.client()
	b, w := e.client()
	lock := e.acquire(a)
	if _, err := b.TryAcquire(e.within(patience), e.key); !errors.Is(err, leasehold.ErrHeld) {
		e.Errorf("error %v", err)
	}
	e.release(lock)
	w.once(refuse)
	if _, err := b.TryAcquire(e.within(patience), e.key); err == nil || errors.Is(err, leasehold.ErrHeld) {
		e.Errorf("denied access: %v", err)
	}
	lock, err := b.TryAcquire(e.within(patience), e.key)
	if err != nil {
		e.Fatal(err)
	}
	e.release(lock)
}

// identity checks that leasehold lacks two faults. awslabs treats the keys ("a","bc") and
// ("ab","c") as equal. dynamolock ignores the sort key.
func identity(e *env) {
	if !e.caps().SortKey {
		return // skipped, because keys of this layout have no sort key
	}
	c, _ := e.client()
	one, err := c.TryAcquire(e.within(patience), e.key+"1", leasehold.WithSortKey("23"))
	if err != nil {
		e.Fatal(err)
	}
	two, err := c.TryAcquire(e.within(patience), e.key+"12", leasehold.WithSortKey("3"))
	if err != nil {
		e.Fatal(err)
	}
	three, err := c.TryAcquire(e.within(patience), e.key+"1", leasehold.WithSortKey("3"))
	if err != nil {
		e.Fatal(err)
	}
	for _, lock := range []*leasehold.Lock{one, two, three} {
		e.release(lock)
	}
}

// onlyTheRecord checks that a client sends only requests for single items. The library dyndb-mutex
// also sends a DescribeTable request before every call.
func onlyTheRecord(e *env) {
	a, _ := e.client()
	c, w := e.client()
	lock := e.acquire(c)
	if err := lock.Renew(e.within(patience)); err != nil {
		e.Fatal(err)
	}
	e.release(lock)
	lock = e.acquire(a)
	_, _ = c.TryAcquire(e.within(patience), e.key)
	if err := c.Break(e.within(patience), e.get(c), leasehold.BreakOptions{}); err != nil {
		e.Fatal(err)
	}
	_ = lock.Release(e.within(patience)) // the error is ignored, because the lock is already broken
	for _, op := range w.sent() {
		if !slices.Contains([]string{"GetItem", "UpdateItem", "DeleteItem"}, op) {
			e.Errorf("sent %s", op)
		}
	}
}
