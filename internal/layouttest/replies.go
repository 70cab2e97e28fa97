package layouttest

import (
	"errors"
	"testing/synctest"
	"time"

	"github.com/leasehold-go/leasehold"
)

func replyChecks() []check {
	return []check{
		{claim: "a grant succeeds whatever happens to its first request", hold: lossyGrant},
		{claim: "a takeover succeeds whatever happens to its first request", hold: lossyTakeover, exact: true},
		{claim: "a renewal succeeds whatever happens to its first request", hold: lossyRenewal},
		{claim: "a release succeeds whatever happens to its first request", hold: lossyRelease},
		{claim: "a break succeeds whatever happens to its first request", hold: lossyBreak},
		{claim: "a hand-over succeeds whatever happens to its first request", hold: lossyHandOver, exact: true},
		{claim: "an unanswered grant does not block its client", hold: inDoubt, exact: true},
		{claim: "an unanswered release of a resumed lock does not block its client", hold: resumeInDoubt, exact: true},
	}
}

// troubles runs a check once with each kind of fault that makes the client repeat a request.
func troubles(test func(what fault)) {
	for _, what := range []fault{loseReply, fail, drop, throttle} {
		test(what)
	}
}

func (f fault) String() string {
	return [...]string{"delivered", "its reply lost", "refused", "throttled", "failed with a 500", "lost"}[f]
}

// holds checks that the given lock is not lost, and that the record contains the lock's version,
// grant and token.
func (e *env) holds(lock *leasehold.Lock, what fault) {
	e.Helper()
	c, _ := e.client()
	if r := e.get(c); r.Released || r.Version != lock.Record().Version || r.Grant != lock.Record().Grant || r.Token != lock.Token() {
		e.Errorf("%v: the record shows %+v, but the lock has %+v", what, r, lock.Record())
	}
	if err := lock.Err(); err != nil {
		e.Errorf("%v: %v", what, err)
	}
}

func lossyGrant(e *env) {
	troubles(func(what fault) {
		c, w := e.client()
		w.once(what)
		lock, err := c.TryAcquire(e.Context(), e.key)
		if err != nil {
			e.Fatalf("%v: %v", what, err)
		}
		e.holds(lock, what)
		e.release(lock)
	})
}

func lossyTakeover(e *env) {
	troubles(func(what fault) {
		c, w := e.client()
		e.put(e.granted(e.key, "a-peer", 20*time.Second))
		writes := 0
		w.always(func(op string) fault {
			if op == "UpdateItem" {
				writes++
			}
			// The second write is the takeover. The first write fails, because a peer (a client
			// of another library) holds the key.
			if op == "UpdateItem" && writes == 2 {
				return what
			}
			return deliver
		})
		lock := e.acquire(c)
		if r, took := lock.TookOver(); !took || r.Grant != "" {
			e.Errorf("%v: took over %+v, %v", what, r, took)
		}
		e.holds(lock, what)
		e.release(lock)
	})
}

func lossyRenewal(e *env) {
	troubles(func(what fault) {
		c, w := e.client()
		lock := e.acquire(c, leasehold.WithoutRenewal())
		w.once(what)
		if err := lock.Renew(e.within(patience)); err != nil {
			e.Fatalf("%v: %v", what, err)
		}
		e.holds(lock, what)
		e.release(lock)
	})
}

func lossyRelease(e *env) {
	for _, opts := range [][]leasehold.ReleaseOption{nil, {leasehold.DeleteOnRelease(true)}} {
		troubles(func(what fault) {
			c, w := e.client()
			lock := e.acquire(c)
			w.once(what)
			if err := lock.Release(e.within(patience), opts...); err != nil {
				e.Errorf("%v: %v", what, err)
			}
			if item := e.item(); !e.isFree(item) {
				e.Errorf("%v: left %v", what, describe(item))
			}
		})
	}
}

func lossyBreak(e *env) {
	troubles(func(what fault) {
		c, w := e.client()
		for name, by := range map[string]func() leasehold.Record{
			"ours": func() leasehold.Record { return e.acquire(c, leasehold.WithoutRenewal()).Record() },
			"a peer's": func() leasehold.Record {
				e.put(e.granted(e.key, "a-peer", patience))
				return e.get(c)
			},
		} {
			r := by()
			w.once(what)
			if err := c.Break(e.within(patience), r, leasehold.BreakOptions{}); err != nil {
				e.Errorf("%s, %v: %v", name, what, err)
			}
			if item := e.item(); !e.isFree(item) {
				e.Errorf("%s, %v: left %v", name, what, describe(item))
			}
		}
	})
}

func lossyHandOver(e *env) {
	troubles(func(what fault) {
		c, w := e.client()
		lock := e.acquire(c)
		next := e.waiter(c)
		synctest.Wait() // wait until the goroutine is in the client's queue for the key
		w.once(what)
		e.release(lock)
		got := <-next
		if got.err != nil {
			e.Fatalf("%v: %v", what, got.err)
		}
		if got.lock.Token() <= lock.Token() {
			e.Errorf("%v: token %d after %d", what, got.lock.Token(), lock.Token())
		}
		e.holds(got.lock, what)
		e.release(got.lock)
	})
}

func inDoubt(e *env) {
	c, w := e.client()
	writes := 0
	w.always(func(string) fault {
		if writes++; writes == 1 {
			return loseReply
		}
		return drop
	})
	if _, err := c.Acquire(e.within(time.Second), e.key); err == nil {
		e.Fatal("granted without a reply")
	}
	// The client now tries to undo the grant, but the wire drops these writes, too.
	time.Sleep(10 * time.Second)
	if item := e.item(); e.isFree(item) {
		e.Fatal("the record does not show the unanswered grant")
	}
	w.always(nil)
	e.takesAtOnce(c)
}

func resumeInDoubt(e *env) {
	a, _ := e.client()
	b, w := e.client()
	g, err := e.acquire(a).Detach()
	if err != nil {
		e.Fatal(err)
	}
	lock, err := b.Resume(e.within(patience), g)
	if err != nil {
		e.Fatal(err)
	}
	w.always(func(string) fault { return drop })
	if err := lock.Release(e.within(time.Second)); !errors.Is(err, leasehold.ErrUnknownOutcome) {
		e.Fatalf("released without a reply: %v", err)
	}
	synctest.Wait() // wait until the client's attempts to release have ended
	w.always(nil)
	e.takesAtOnce(b)
}

// takesAtOnce checks that c acquires the key within a second, although the record shows c as the
// holder: either c got no reply to a grant, or a release by c did not arrive. TookOver must not
// report a takeover from a dead holder.
func (e *env) takesAtOnce(c *leasehold.Client) {
	e.Helper()
	began := time.Now()
	lock, err := c.TryAcquire(e.within(patience), e.key)
	if err != nil {
		e.Fatal(err)
	}
	if took := time.Since(began); took > time.Second {
		e.Errorf("took %v", took)
	}
	if _, took := lock.TookOver(); took {
		e.Error("the client's own attempt is reported as a dead holder")
	}
	e.release(lock)
}
