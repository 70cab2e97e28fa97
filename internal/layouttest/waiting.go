package layouttest

import (
	"context"
	"errors"
	"testing/synctest"
	"time"

	"github.com/leasehold-go/leasehold"
)

func waitChecks() []check {
	return []check{
		{claim: "a waiter acquires the key when the holder releases it", hold: waiterOfOurs},
		{claim: "a waiter acquires the key when a peer releases it", hold: waiterOfPeer},
		{claim: "a cancelled wait does not change the record", hold: waiterEnds},
		{claim: "a lock stays held while it is renewed", hold: renewed, exact: true},
		{claim: "Renew extends the trust and the lease in the record", hold: renewedByHand},
	}
}

// granted is the result of an Acquire that another goroutine has called.
type granted struct {
	lock *leasehold.Lock
	err  error
	at   time.Time
}

// waiter starts a goroutine that acquires the key. It returns a channel that receives the
// result.
func (e *env) waiter(c *leasehold.Client) <-chan granted {
	out := make(chan granted, 1)
	ctx := e.within(patience)
	go func() {
		lock, err := c.Acquire(ctx, e.key)
		out <- granted{lock, err, time.Now()}
	}()
	return out
}

// waiting returns a client and a channel. The channel receives a value each time the client
// begins to wait for a held key.
func (e *env) waiting() (*leasehold.Client, <-chan struct{}) {
	seen := make(chan struct{}, 100)
	c, _ := e.client(func(cfg *leasehold.Config) {
		cfg.OnEvent = func(_ context.Context, ev leasehold.Event) {
			if ev.Kind == leasehold.EventWaiting {
				seen <- struct{}{}
			}
		}
	})
	return c, seen
}

func waiterOfOurs(e *env) {
	a, _ := e.client()
	b, seen := e.waiting()
	lock := e.acquire(a)
	next := e.waiter(b)
	<-seen
	e.release(lock)
	got := <-next
	if got.err != nil {
		e.Fatal(got.err)
	}
	if got.lock.Token() <= lock.Token() {
		e.Errorf("token %d after %d", got.lock.Token(), lock.Token())
	}
	e.release(got.lock)
}

func waiterOfPeer(e *env) {
	b, seen := e.waiting()
	e.put(e.granted(e.key, "a-peer", patience))
	next := e.waiter(b)
	<-seen
	if e.peer.freed != nil {
		e.put(e.record(e.key, e.peer.freed("a-peer")))
	} else {
		e.remove()
	}
	got := <-next
	if got.err != nil {
		e.Fatal(got.err)
	}
	e.release(got.lock)
}

func waiterEnds(e *env) {
	a, _ := e.client()
	b, seen := e.waiting()
	lock := e.acquire(a)
	before := e.item()
	ctx, cancel := context.WithCancel(e.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := b.Acquire(ctx, e.key)
		ended <- err
	}()
	<-seen
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) || !errors.Is(err, leasehold.ErrHeld) {
		e.Errorf("error %v", err)
	}
	e.unchanged(before, "a wait")
	e.release(lock)
	// The cancelled wait of client b must not prevent a later Acquire of client b.
	e.release(e.acquire(b))
}

func renewed(e *env) {
	a, _ := e.client()
	b, _ := e.client()
	lock := e.acquire(a)
	next := e.waiter(b)
	// A minute is three leases. If client a did not renew its lock, client b would be granted the key
	// in this time.
	time.Sleep(time.Minute + 500*time.Millisecond)
	synctest.Wait()
	select {
	case got := <-next:
		e.Fatalf("granted to another client: %+v", got)
	default:
	}
	if err := lock.Err(); err != nil {
		e.Fatal(err)
	}
	e.release(lock)
	got := <-next
	if got.err != nil {
		e.Fatal(got.err)
	}
	e.release(got.lock)
}

func renewedByHand(e *env) {
	c, _ := e.client()
	lock := e.acquire(c, leasehold.WithoutRenewal())
	first := lock.Record()
	sent := time.Now()
	if err := lock.Renew(e.within(patience), leasehold.WithLease(time.Minute)); err != nil {
		e.Fatal(err)
	}
	if until := lock.TrustedUntil(); until.Before(sent.Add(30 * time.Second)) {
		e.Errorf("renewed for a minute, trusted for %v", until.Sub(sent))
	}
	if until := e.peer.until(e.item(), sent); until.Before(sent.Add(time.Minute)) {
		e.Errorf("renewed for a minute, a peer waits for %v", until.Sub(sent))
	}
	if r := lock.Record(); r.Version == first.Version || r.Grant != first.Grant || r.Token != first.Token {
		e.Errorf("renewed from %+v to %+v", first, r)
	}
	e.release(lock)
}
