package rwlock_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/rwlock"
)

// readWriter is one process that reads and writes under a key.
type readWriter struct {
	w    *lab.World
	c    *leasehold.Client
	wire *lab.Wire
	l    *rwlock.RWLock
}

func (p *readWriter) read(opts ...leasehold.AcquireOption) *leasehold.Lock {
	p.w.T.Helper()
	lock, err := p.l.AcquireRead(p.w.T.Context(), opts...)
	if err != nil {
		p.w.T.Fatal(err)
	}
	return lock
}

func (p *readWriter) write(opts ...leasehold.AcquireOption) *leasehold.Lock {
	p.w.T.Helper()
	lock, err := p.l.AcquireWrite(p.w.T.Context(), opts...)
	if err != nil {
		p.w.T.Fatal(err)
	}
	return lock
}

func newReadWriter(w *lab.World, key string, change ...func(*leasehold.Config)) *readWriter {
	w.T.Helper()
	cfg := lab.Config()
	for _, f := range change {
		f(&cfg)
	}
	c, wire := w.Client(cfg)
	w.T.Cleanup(func() { _ = c.Close(context.Background()) })
	l, err := rwlock.New(c, key)
	if err != nil {
		w.T.Fatal(err)
	}
	return &readWriter{w, c, wire, l}
}

// begun is an acquisition that goes on beside the test.
type begun struct {
	lock chan *leasehold.Lock
	err  chan error
}

func (b *begun) granted() *leasehold.Lock {
	select {
	case lock := <-b.lock:
		return lock
	default:
		return nil
	}
}

// within waits for the grant for so long at most.
func (b *begun) within(t *testing.T, d time.Duration) *leasehold.Lock {
	t.Helper()
	select {
	case lock := <-b.lock:
		return lock
	case err := <-b.err:
		t.Fatal(err)
	case <-time.After(d):
		t.Fatalf("not granted within %v", d)
	}
	return nil
}

func begin(ctx context.Context, acquire func(context.Context, ...leasehold.AcquireOption) (*leasehold.Lock, error)) *begun {
	b := &begun{make(chan *leasehold.Lock, 1), make(chan error, 1)}
	go func() {
		if lock, err := acquire(ctx); err != nil {
			b.err <- err
		} else {
			b.lock <- lock
		}
	}()
	return b
}

func updates(c lab.Call) bool { return c.Op == "UpdateItem" }

// entriesOf returns who holds a read/write lock.
func entriesOf(w *lab.World, key string) []leasehold.Record {
	w.T.Helper()
	c, _ := w.Client(lab.Config())
	var held []leasehold.Record
	for r, err := range c.List(w.T.Context(), leasehold.ListPrefix(key)) {
		if err != nil {
			w.T.Fatal(err)
		}
		if !r.Released {
			held = append(held, r)
		}
	}
	return held
}

func TestReadersShareAKeyAndAWriterExcludesAll(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		a, b := newReadWriter(w, "set"), newReadWriter(w, "set")
		r1, r2, r3 := a.read(), b.read(), a.read()
		if r1.Token() >= r2.Token() || r2.Token() >= r3.Token() {
			t.Errorf("tokens %d, %d, %d do not grow", r1.Token(), r2.Token(), r3.Token())
		}
		if _, err := b.l.AcquireWrite(t.Context(), leasehold.NoWait()); !errors.Is(err, leasehold.ErrHeld) {
			t.Errorf("a writer beside readers: %v", err)
		}
		for _, r := range []*leasehold.Lock{r1, r2, r3} {
			w.Release(r)
		}
		wr := b.write(leasehold.NoWait())
		if wr.Token() <= r3.Token() {
			t.Errorf("token %d after %d", wr.Token(), r3.Token())
		}
		for _, acquire := range []func(context.Context, ...leasehold.AcquireOption) (*leasehold.Lock, error){a.l.AcquireRead, a.l.AcquireWrite} {
			var held *leasehold.HeldError
			if _, err := acquire(t.Context(), leasehold.NoWait()); !errors.As(err, &held) || held.Holder.Grant != wr.Record().Grant {
				t.Errorf("beside a writer: %v", err)
			}
		}
		w.Release(wr)
		w.Release(a.read(leasehold.NoWait()))
	})
}

func TestAReadOrWriteLockIsGrantedInOneWriteButForTheFirstReaderEver(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		p := newReadWriter(w, "set")
		w.Release(p.write())
		if ops := strings.Join(lab.Ops(p.wire.Sent()), " "); ops != "UpdateItem UpdateItem" {
			t.Errorf("a writer's grant and release on a new row: %s", ops)
		}
		lab.Elapse(time.Second) // readers first
		w.Release(p.write())
		w.Release(p.read())
		if ops := strings.Join(lab.Ops(p.wire.Sent()), " "); ops != "UpdateItem UpdateItem UpdateItem UpdateItem" {
			t.Errorf("two grants and releases: %s", ops)
		}
		p = newReadWriter(w, "new")
		w.Release(p.read())
		if ops := strings.Join(lab.Ops(p.wire.Sent()), " "); ops != "UpdateItem GetItem UpdateItem UpdateItem" {
			t.Errorf("the first reader of a new row: %s", ops)
		}
	})
}

func TestReadersGoFirstAfterAWriter(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		stop := make(chan struct{})
		var written atomic.Int64
		for range 3 { // writers that never pause
			p := newReadWriter(w, "set")
			go func() {
				for {
					select {
					case <-stop:
						return
					default:
					}
					lock, err := p.l.AcquireWrite(context.Background())
					if err != nil {
						return
					}
					time.Sleep(300 * time.Millisecond)
					_ = lock.Release(context.Background())
					written.Add(1)
				}
			}()
		}
		defer func() {
			close(stop)
			lab.Elapse(time.Minute)
		}()
		reader := newReadWriter(w, "set")
		for range 10 {
			lab.Elapse(500 * time.Millisecond)
			before := written.Load()
			r := begin(t.Context(), reader.l.AcquireRead).within(t, 10*time.Second)
			if after := written.Load(); after > before+2 { // the one under way, and one that was about to be granted
				t.Errorf("%d writers passed a reader", after-before)
			}
			w.Release(r)
		}
	})
}

func TestTheHundredAndFirstReaderWaitsForOneToGo(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		a, b, c := newReadWriter(w, "set"), newReadWriter(w, "set"), newReadWriter(w, "set")
		dead := c.read()
		var readers []*leasehold.Lock
		for range 99 {
			readers = append(readers, a.read())
		}
		one := begin(t.Context(), b.l.AcquireRead)
		lab.Elapse(10 * time.Second)
		if one.granted() != nil {
			t.Fatal("101 readers")
		}
		w.Release(readers[0])
		first := one.within(t, 2*time.Second)
		c.wire.SetFault(lab.Cut)
		second := begin(t.Context(), b.l.AcquireRead).within(t, 25*time.Second)
		if r, ok := second.TookOver(); !ok || r.Grant != dead.Record().Grant {
			t.Errorf("took over %v, %v", r.Grant, ok)
		}
		for _, r := range append(readers[1:], first, second) {
			w.Release(r)
		}
	})
}

func TestTheHundredAndFirstReaderHearsOfTheLimit(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		p := newReadWriter(w, "set")
		for range 100 {
			p.read(leasehold.WithoutRenewal())
		}
		late := newReadWriter(w, "set")
		_, tried := late.l.AcquireRead(t.Context(), leasehold.NoWait())
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, waited := late.l.AcquireRead(ctx)
		for _, err := range []error{tried, waited} {
			if !errors.Is(err, leasehold.ErrHeld) || !strings.Contains(err.Error(), "99 other readers") {
				t.Errorf("error %v", err)
			}
		}
		if _, err := late.l.AcquireWrite(t.Context(), leasehold.NoWait()); !errors.Is(err, leasehold.ErrHeld) || strings.Contains(err.Error(), "other readers") {
			t.Errorf("a writer: %v", err)
		}
	})
}

func TestListAndBreakOneHolderOfAReadWriteLock(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		a, b := newReadWriter(w, "set"), newReadWriter(w, "set")
		r1 := a.read()
		lab.Elapse(time.Second)
		r2 := b.read()
		held := entriesOf(w, "set")
		if len(held) != 2 || held[0].Grant != r1.Record().Grant || held[0].Token != r1.Token() || held[1].Owner != r2.Record().Owner || held[1].Lease != 20*time.Second {
			t.Fatalf("the list shows %+v", held)
		}
		if r, err := a.c.Get(t.Context(), "set"); err != nil || r.Grant != r1.Record().Grant {
			t.Errorf("Get: %+v, %v", r, err)
		}
		if b, err := json.Marshal(held[0]); err != nil || !bytes.Contains(b, []byte(`"state":"held","mode":"read"`)) {
			t.Errorf("%s, %v", b, err)
		}
		if err := a.c.Break(t.Context(), held[0], leasehold.WithReason("stuck")); err != nil {
			t.Fatal(err)
		}
		if err := r1.Renew(t.Context()); !errors.Is(err, leasehold.ErrLost) || !strings.HasSuffix(err.Error(), ": stuck") {
			t.Errorf("a broken reader renews: %v", err)
		}
		if err := r2.Renew(t.Context()); err != nil {
			t.Errorf("the other reader: %v", err)
		}
		var changed *leasehold.ChangedError
		if err := a.c.Break(t.Context(), held[0]); !errors.As(err, &changed) {
			t.Errorf("broken again: %v", err)
		}
		w.Release(r2)
		wr := a.write()
		held = entriesOf(w, "set")
		if err := b.c.Break(t.Context(), held[0], leasehold.WithReason("it hangs")); err != nil {
			t.Fatal(err)
		}
		if err := wr.Commit(t.Context(), nil); !errors.Is(err, leasehold.ErrLost) || !strings.Contains(err.Error(), ": it hangs: operation error") {
			t.Errorf("a broken writer commits: %v", err)
		}
		if r, err := a.c.Get(t.Context(), "set"); err != nil || !r.Released {
			t.Errorf("Get of a free one: %+v, %v", r, err)
		}
	})
}

func TestAReadLockDoesNotBecomeAWriteLock(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		p := newReadWriter(w, "set")
		r := p.read()
		for _, opts := range [][]leasehold.AcquireOption{nil, {leasehold.Reentrant()}} {
			if _, err := p.l.AcquireWrite(r.Context(), opts...); !errors.Is(err, leasehold.ErrDeadlock) {
				t.Errorf("a writer inside a reader: %v", err)
			}
		}
		if _, err := p.l.AcquireRead(r.Context()); !errors.Is(err, leasehold.ErrDeadlock) {
			t.Errorf("a reader inside a reader: %v", err)
		}
		if _, err := p.c.Acquire(r.Context(), "set", leasehold.Reentrant()); !errors.Is(err, leasehold.ErrDeadlock) {
			t.Errorf("a plain lock inside a reader: %v", err)
		}
		again, err := p.l.AcquireRead(r.Context(), leasehold.Reentrant())
		if err != nil || again.Token() != r.Token() {
			t.Fatalf("a shared reader: %v", err)
		}
		w.Release(again)
		w.Release(r)
		wr := p.write()
		inner, err := p.l.AcquireRead(wr.Context(), leasehold.Reentrant())
		if err != nil || inner.Token() != wr.Token() {
			t.Fatalf("a reader that shares the writer's grant: %v", err)
		}
		w.Release(inner)
		w.Release(wr)
	})
}

func TestReadWriteLocksUnderASharedLeaseAreRenewedOneByOne(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		p := newReadWriter(w, "set", func(c *leasehold.Config) { c.SharedLease = true })
		r := p.read()
		lab.Elapse(time.Minute)
		if r.Err() != nil {
			t.Fatal(r.Err())
		}
		if got := entriesOf(w, "set")[0].Lease; got != 20*time.Second {
			t.Errorf("lease %v", got)
		}
		w.Release(r)
	})
}
