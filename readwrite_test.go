package leasehold_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/layout"
	"github.com/leasehold-go/leasehold/rwlock"
	"github.com/leasehold-go/leasehold/table"
)

// readWriter is one process that reads and writes under a key.
type readWriter struct {
	w    *lab.World
	c    *leasehold.Client
	wire *lab.Wire
	l    *rwlock.RWLock
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

// begun is an acquisition that goes on beside the test.
type begun struct {
	lock chan *leasehold.Lock
	err  chan error
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
		if ops := opsOf(p.wire.Sent()); ops != "UpdateItem UpdateItem" {
			t.Errorf("a writer's grant and release on a new row: %s", ops)
		}
		lab.Elapse(time.Second) // readers first
		w.Release(p.write())
		w.Release(p.read())
		if ops := opsOf(p.wire.Sent()); ops != "UpdateItem UpdateItem UpdateItem UpdateItem" {
			t.Errorf("two grants and releases: %s", ops)
		}
		p = newReadWriter(w, "new")
		w.Release(p.read())
		if ops := opsOf(p.wire.Sent()); ops != "UpdateItem GetItem UpdateItem UpdateItem" {
			t.Errorf("the first reader of a new row: %s", ops)
		}
	})
}

func opsOf(calls []lab.Call) string {
	s := ""
	for i, c := range calls {
		if i > 0 {
			s += " "
		}
		s += c.Op
	}
	return s
}

func TestAWaitingWriterKeepsNewReadersOut(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		a, b, c := newReadWriter(w, "set"), newReadWriter(w, "set"), newReadWriter(w, "set")
		r := a.read()
		writer := begin(t.Context(), b.l.AcquireWrite)
		lab.Elapse(time.Minute) // its intent is renewed
		reader := begin(t.Context(), c.l.AcquireRead)
		lab.Elapse(time.Minute)
		if reader.granted() != nil || writer.granted() != nil {
			t.Fatal("granted beside a reader and a writer that waits")
		}
		if _, err := a.l.AcquireRead(t.Context(), leasehold.NoWait()); !errors.Is(err, leasehold.ErrHeld) {
			t.Errorf("a try to read while a writer waits: %v", err)
		}
		w.Release(r)
		wr := writer.within(t, 2*time.Second)
		if w.Item("set")["intent"] != nil {
			t.Error("a writer that was granted intends still")
		}
		lab.Elapse(time.Minute)
		if reader.granted() != nil {
			t.Fatal("a reader was granted beside the writer")
		}
		w.Release(wr)
		w.Release(reader.within(t, 2*time.Second))
	})
}

func TestAWriterThatGivesUpLetsReadersIn(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		a, b := newReadWriter(w, "set"), newReadWriter(w, "set")
		r := a.read()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		var held *leasehold.HeldError
		if _, err := b.l.AcquireWrite(ctx); !errors.As(err, &held) || held.Holder.Grant != r.Record().Grant {
			t.Errorf("a writer whose wait has ended: %v", err)
		}
		lab.Elapse(time.Second)
		if w.Item("set")["intent"] != nil {
			t.Error("the intent of a writer that gave up is there still")
		}
		w.Release(b.read(leasehold.NoWait()))
		w.Release(r)
	})
}

func TestADeadWritersIntentKeepsReadersOutForOneLease(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		a, b, c := newReadWriter(w, "set"), newReadWriter(w, "set"), newReadWriter(w, "set")
		r := a.read()
		begin(t.Context(), b.l.AcquireWrite)
		lab.Elapse(10 * time.Second)
		b.wire.SetFault(lab.Cut)
		lab.Elapse(4 * time.Second)
		began := time.Now()
		second := begin(t.Context(), c.l.AcquireRead).within(t, time.Minute)
		if waited := time.Since(began); waited < 20*time.Second-6*time.Second || waited > 22*time.Second {
			t.Errorf("granted %v after a writer that died while it waited, lease 20s", waited)
		}
		w.Release(r)
		w.Release(second)
	})
}

func TestADeadReaderIsTakenOverAfterItsLeaseAndALiveOneNever(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		a, b, c := newReadWriter(w, "set"), newReadWriter(w, "set"), newReadWriter(w, "set")
		dead, alive := a.read(), b.read()
		writer := begin(t.Context(), c.l.AcquireWrite)
		lab.Elapse(time.Second)
		a.wire.SetFault(lab.Cut)
		lab.Elapse(2 * time.Minute)
		if writer.granted() != nil || alive.Err() != nil {
			t.Fatalf("a writer was granted beside a reader that renews: %v", alive.Err())
		}
		if dead.Err() == nil {
			t.Error("a reader that has not renewed for two minutes is trusted")
		}
		w.Release(alive)
		wr := writer.within(t, 2*time.Second) // it has watched the dead one for long
		if r, ok := wr.TookOver(); !ok || r.Grant != dead.Record().Grant {
			t.Errorf("took over %+v, %v", r, ok)
		}
		w.Release(wr)

		dead2 := b.write()
		b.wire.SetFault(lab.Cut)
		died := time.Now()
		reader := begin(t.Context(), c.l.AcquireRead).within(t, time.Minute)
		if waited := time.Since(died); waited < 20*time.Second || waited > 22*time.Second {
			t.Errorf("a dead writer was taken over after %v, lease 20s", waited)
		}
		if r, ok := reader.TookOver(); !ok || r.Grant != dead2.Record().Grant {
			t.Errorf("took over %+v, %v", r, ok)
		}
		w.Release(reader)
	})
}

func TestATryTakesOverADeadReaderThatItHasWatched(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		a, b := newReadWriter(w, "set"), newReadWriter(w, "set")
		a.read()
		a.wire.SetFault(lab.Cut)
		if _, err := b.l.AcquireWrite(t.Context(), leasehold.NoWait()); !errors.Is(err, leasehold.ErrHeld) {
			t.Fatal(err)
		}
		lab.Elapse(20 * time.Second)
		w.Release(b.write(leasehold.NoWait()))
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

func TestAReadLockFencesItsCommits(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		w.Work()
		a, b := newReadWriter(w, "set"), newReadWriter(w, "set")
		r := a.read()
		other := b.read()
		if err := r.Commit(t.Context(), lab.Writes(lab.Note("log", "r"))); err != nil {
			t.Fatal(err)
		}
		guard := r.Guard()
		w.Release(r)
		if err := w.Transact(guard, lab.Note("log", "late")); err == nil {
			t.Error("a guard held after its reader had left")
		}
		w.Release(other)
		wr := b.write()
		guard = wr.Guard()
		if err := w.Transact(guard, lab.Note("log", "w")); err != nil {
			t.Fatal(err)
		}
		w.Release(wr)
		if err := w.Transact(guard, lab.Note("log", "late")); err == nil {
			t.Error("a guard held after its writer had left")
		}
	})
}

func TestALateCopyOfAGrantDoesNotBringItsGuardBack(t *testing.T) {
	for _, write := range []bool{false, true} {
		t.Run(fmt.Sprintf("write %v", write), func(t *testing.T) {
			lab.InBubble(t, func(t *testing.T, w *lab.World) {
				w.Work()
				a, b := newReadWriter(w, "set"), newReadWriter(w, "set")
				w.Release(b.read()) // the row is there
				var again func() (*http.Response, error)
				a.wire.SetFault(lab.Once(updates, func(r *lab.Request) (*http.Response, error) {
					again = r.Send
					return r.Send()
				}))
				acquire := a.read
				if write {
					acquire = a.write
				}
				lock := acquire(leasehold.NoWait()) // which is not held back for readers
				guard := lock.Guard()
				w.Release(lock)
				lab.Elapse(time.Second)
				w.Release(b.write()) // another was last
				lab.Elapse(time.Second)
				if res, err := again(); err != nil || res.StatusCode != http.StatusOK {
					t.Fatalf("the copy did not land: %v %v", res, err)
				}
				if err := w.Transact(guard, lab.Note("log", "late")); err == nil {
					t.Error("the guard holds again")
				}
			})
		})
	}
}

func updates(c lab.Call) bool { return c.Op == "UpdateItem" }

func TestALateCopyOfTheLastWritersGrantMeetsItsEnd(t *testing.T) {
	// One that waited lets readers go first, by its own clock then, and is refused
	// for that. Nothing but the name of the last writer keeps the others out.
	broken := func(w *lab.World, p *readWriter, lock *leasehold.Lock) {
		if err := p.c.Break(w.T.Context(), lock.Record()); err != nil {
			w.T.Fatal(err)
		}
	}
	released := func(w *lab.World, _ *readWriter, lock *leasehold.Lock) { w.Release(lock) }
	for name, tc := range map[string]struct {
		opts []leasehold.AcquireOption
		end  func(*lab.World, *readWriter, *leasehold.Lock)
	}{
		"that waited":           {nil, released},
		"that tried":            {[]leasehold.AcquireOption{leasehold.NoWait()}, released},
		"that was broken":       {nil, broken},
		"that tried and broken": {[]leasehold.AcquireOption{leasehold.NoWait()}, broken},
	} {
		t.Run(name, func(t *testing.T) {
			lab.InBubble(t, func(t *testing.T, w *lab.World) {
				a := newReadWriter(w, "set")
				w.Release(a.read())
				var again func() (*http.Response, error)
				a.wire.SetFault(lab.Once(updates, func(r *lab.Request) (*http.Response, error) {
					again = r.Send
					return r.Send()
				}))
				tc.end(w, a, a.write(tc.opts...))
				lab.Elapse(time.Second)
				if res, err := again(); err != nil || res.StatusCode == http.StatusOK {
					t.Errorf("the copy landed: %v %v", res, err)
				}
			})
		})
	}
}

func TestALostReplyOfAReadWriteLockLosesNothing(t *testing.T) {
	for _, mode := range []string{"read", "write"} {
		t.Run(mode, func(t *testing.T) {
			lab.InBubble(t, func(t *testing.T, w *lab.World) {
				a, b := newReadWriter(w, "set"), newReadWriter(w, "set")
				w.Release(b.read())
				acquire := a.read
				if mode == "write" {
					acquire = a.write
				}
				a.wire.SetFault(lab.Once(updates, lab.LoseReply))
				began := time.Now()
				lock := acquire()
				if waited := time.Since(began); waited > time.Second {
					t.Errorf("a grant whose reply was lost took %v", waited)
				}
				if n := len(entriesOf(w, "set")); n != 1 {
					t.Errorf("%d entries: %v", n, w.Item("set"))
				}
				a.wire.SetFault(lab.Once(updates, lab.LoseReply))
				if err := lock.Renew(t.Context()); err != nil || lock.Err() != nil {
					t.Errorf("a renewal whose reply was lost: %v, %v", err, lock.Err())
				}
				a.wire.SetFault(lab.Once(updates, lab.LoseReply))
				w.Release(lock)
				if n := len(entriesOf(w, "set")); n != 0 {
					t.Errorf("%d entries after the release: %v", n, w.Item("set"))
				}
			})
		})
	}
}

// entries returns who holds a read/write lock.
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

func TestAReleaseOfAWriterWhoseReplyWasLostIsKnownThoughReadersCame(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		a, b := newReadWriter(w, "set"), newReadWriter(w, "set")
		lock := a.write()
		var r *leasehold.Lock
		a.wire.SetFault(lab.Once(updates, func(req *lab.Request) (*http.Response, error) {
			_, _ = req.Send()
			r = b.read()
			return nil, lab.ErrReset
		}))
		w.Release(lock)
		w.Release(r)
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
		if err := a.c.Break(t.Context(), held[0]); err != nil {
			t.Fatal(err)
		}
		if err := r1.Renew(t.Context()); !errors.Is(err, leasehold.ErrLost) {
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
		if err := b.c.Break(t.Context(), held[0]); err != nil {
			t.Fatal(err)
		}
		if err := wr.Commit(t.Context(), nil); !errors.Is(err, leasehold.ErrLost) {
			t.Errorf("a broken writer commits: %v", err)
		}
		if r, err := a.c.Get(t.Context(), "set"); err != nil || !r.Released {
			t.Errorf("Get of a free one: %+v, %v", r, err)
		}
	})
}

func TestAKeyIsAPlainLockOrAReadWriteLock(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		p := newReadWriter(w, "set")
		w.Release(p.read())
		if _, err := p.c.TryAcquire(t.Context(), "set"); !errors.Is(err, leasehold.ErrBadRecord) {
			t.Errorf("a plain lock on it: %v", err)
		}
		w.Release(w.Acquire(p.c, "plain"))
		plain := newReadWriter(w, "plain")
		for _, acquire := range []func(context.Context, ...leasehold.AcquireOption) (*leasehold.Lock, error){plain.l.AcquireRead, plain.l.AcquireWrite} {
			if _, err := acquire(t.Context()); !errors.Is(err, leasehold.ErrBadRecord) {
				t.Errorf("a read/write lock on a plain one: %v", err)
			}
		}
	})
}

func TestWhatAReadWriteLockCannotDoIsRefusedBeforeAnythingIsSent(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		p := newReadWriter(w, "set")
		for name, opt := range map[string]leasehold.AcquireOption{
			"data": leasehold.WithData([]byte("x")), "initial data": leasehold.WithInitialData([]byte("x")),
			"attributes": leasehold.WithAttributes(map[string]types.AttributeValue{"a": lab.Str("b")}), "delete": leasehold.DeleteOnRelease(),
		} {
			if _, err := p.l.AcquireRead(t.Context(), opt); !errors.Is(err, errors.ErrUnsupported) {
				t.Errorf("%s: %v", name, err)
			}
		}
		if n := len(p.wire.Sent()); n != 0 {
			t.Errorf("%d requests", n)
		}
		lock := p.read()
		p.wire.Sent()
		if err := lock.Renew(t.Context(), leasehold.WithData(nil)); !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("renew with data: %v", err)
		}
		if _, err := lock.Detach(); !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("detach: %v", err)
		}
		if err := lock.Release(t.Context(), leasehold.DeleteOnRelease()); !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("delete: %v", err)
		}
		if n := len(p.wire.Sent()); n != 0 {
			t.Errorf("%d requests", n)
		}
		w.Release(lock)

		cfg := lab.Config()
		cfg.Layout = layout.AWSLabs{}
		c, _ := w.Client(cfg)
		if _, err := rwlock.New(c, "set"); !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("another layout: %v", err)
		}
		if _, err := rwlock.New(p.c, ""); err == nil {
			t.Error("an empty key was accepted")
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

func TestAFreeReadWriteRowMayBeCollectedAfterAWriterAndAHeldOneNever(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		p := newReadWriter(w, "set")
		lock := p.write()
		if w.Item("set")["expiresAt"] != nil {
			t.Error("a held row may be collected")
		}
		w.Release(lock)
		if w.Item("set")["expiresAt"] == nil {
			t.Error("a row that a writer left is never collected")
		}
		r := p.read()
		if w.Item("set")["expiresAt"] != nil {
			t.Error("a row that is read may be collected")
		}
		w.Release(r)
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

func TestARenewalThatLandsBeforeATakeoverDefeatsIt(t *testing.T) {
	for _, write := range []bool{false, true} {
		t.Run(fmt.Sprintf("of a writer %v", write), func(t *testing.T) {
			lab.InBubble(t, func(t *testing.T, w *lab.World) {
				a, b := newReadWriter(w, "set"), newReadWriter(w, "set")
				hold, seek := a.read, b.l.AcquireWrite
				if write {
					hold, seek = a.write, b.l.AcquireRead
				}
				hold()
				began := time.Now()
				renewal := make(chan func() (*http.Response, error), 1)
				a.wire.SetFault(func(r *lab.Request) (*http.Response, error) {
					select {
					case renewal <- r.Send:
					default:
					}
					return lab.Cut(r)
				})
				landed := time.Time{}
				b.wire.SetFault(func(r *lab.Request) (*http.Response, error) {
					if r.Op == "UpdateItem" && r.Grants() && landed.IsZero() && time.Since(began) > 19*time.Second {
						_, _ = (<-renewal)()
						landed = time.Now()
					}
					return r.Send()
				})
				begin(t.Context(), seek).within(t, time.Minute)
				if waited := time.Since(landed); waited < 20*time.Second || waited > 22*time.Second {
					t.Errorf("taken over %v after the renewal had landed, lease 20s", waited)
				}
			})
		})
	}
}

func TestAWriterLetsReadersGoFirstByLookingNotByWriting(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		a, b := newReadWriter(w, "set"), newReadWriter(w, "set")
		lock := a.write()
		lab.Elapse(10 * time.Second)
		writer := begin(t.Context(), b.l.AcquireWrite)
		lab.Elapse(10 * time.Second)
		w.Release(lock)
		released := time.Now()
		next := writer.within(t, 5*time.Second)
		// Twice PollMax is the longest pause of a reader.
		if waited := time.Since(released); waited < time.Second || waited > 3*time.Second {
			t.Errorf("granted %v after the writer before, readers may pause for 1s", waited)
		}
		writes := 0
		for _, c := range b.wire.Sent() {
			if c.Op == "UpdateItem" {
				writes++
			}
		}
		if writes > 3 { // the first, perhaps one that met what had just changed, and the grant
			t.Errorf("%d writes to be granted", writes)
		}
		w.Release(next)
	})
}

func TestAnUnsettledAttemptForAReadWriteLockIsNoObstacleToItsOwnClient(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		a := newReadWriter(w, "set")
		w.Release(a.read())
		a.wire.SetFault(lab.Once(updates, func(r *lab.Request) (*http.Response, error) {
			time.AfterFunc(10*time.Second, func() { _, _ = r.Send() })
			return lab.Cut(r)
		}))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := a.l.AcquireWrite(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		lab.Elapse(15 * time.Second)
		if n := len(entriesOf(w, "set")); n != 1 {
			t.Fatalf("%d entries: the request has not landed late", n)
		}
		began := time.Now()
		w.Release(a.write())
		if waited := time.Since(began); waited > time.Second {
			t.Errorf("granted after %v", waited)
		}
	})
}

func TestAnEarlierAttemptToReadThatIsHeldIsNotReplacedByALaterOneThatArrivesLate(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		a, b := newReadWriter(w, "set"), newReadWriter(w, "set")
		w.Release(b.read()) // the row is there
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var writer *begun
		var late func() (*http.Response, error)
		n := 0
		a.wire.SetFault(func(r *lab.Request) (*http.Response, error) {
			if n++; n > 2 {
				return r.Send()
			}
			if n == 1 {
				_, _ = r.Send()
				return nil, lab.ErrReset
			}
			late = r.Send
			writer = begin(ctx, b.l.AcquireWrite)
			time.Sleep(time.Second) // its intent is there
			return nil, lab.ErrReset
		})
		r := a.read()
		if writer == nil || writer.granted() != nil {
			t.Fatal("not what this test is about")
		}
		cancel()
		lab.Elapse(2 * time.Second)
		_, _ = late()
		if got := entriesOf(w, "set"); len(got) != 1 || got[0].Grant != r.Record().Grant {
			t.Errorf("the row shows %+v", got)
		}
		if wr, err := a.l.AcquireWrite(t.Context(), leasehold.NoWait()); err == nil && r.Err() == nil {
			t.Errorf("token %d writes beside a reader", wr.Token())
		}
		if err := r.Renew(t.Context()); err != nil {
			t.Errorf("the reader: %v", err)
		}
	})
}

func TestAnEarlierAttemptToWriteThatIsHeldIsNotReplacedByALaterOneThatArrivesLate(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		a, b := newReadWriter(w, "set"), newReadWriter(w, "set")
		w.Release(b.read()) // the row is there
		var kept []func() (*http.Response, error)
		var r *leasehold.Lock
		n := 0
		a.wire.SetFault(func(req *lab.Request) (*http.Response, error) {
			if req.Op != "UpdateItem" {
				return req.Send()
			}
			if !req.Grants() { // the intent does not arrive
				return nil, lab.ErrReset
			}
			switch n++; n {
			case 1:
				kept = append(kept, req.Send)
				return nil, lab.ErrReset
			case 2:
				kept = append(kept, req.Send)
				r = b.read(leasehold.WithLease(time.Second), leasehold.WithoutRenewal())
				return nil, lab.ErrReset
			case 4: // that names the dead reader
				_ = r.Release(t.Context())
				_, _ = kept[0]()
			}
			return req.Send()
		})
		wr := a.write()
		if n < 4 {
			t.Fatal("not what this test is about")
		}
		a.wire.SetFault(nil)
		_, _ = kept[1]()
		if got := entriesOf(w, "set"); len(got) != 1 || got[0].Grant != wr.Record().Grant {
			t.Errorf("the row shows %+v", got)
		}
		if r, err := a.l.AcquireRead(t.Context(), leasehold.NoWait()); err == nil && wr.Err() == nil {
			t.Errorf("token %d reads beside a writer", r.Token())
		}
		if err := wr.Renew(t.Context()); err != nil {
			t.Errorf("the writer: %v", err)
		}
	})
}

func TestAnAttemptToReadThatLandedTooLongAgoIsReplaced(t *testing.T) {
	for _, others := range []int{0, 99} { // none, and a full house
		lab.InBubble(t, func(t *testing.T, w *lab.World) {
			a, b := newReadWriter(w, "set"), newReadWriter(w, "set")
			w.Release(b.read()) // the row is there
			for range others {
				b.read()
			}
			began := time.Now()
			a.wire.SetFault(func(r *lab.Request) (*http.Response, error) {
				if time.Since(began) > 12*time.Second {
					return r.Send()
				}
				if r.Op == "UpdateItem" && time.Since(began) < time.Second {
					_, _ = r.Send()
				}
				return lab.Cut(r)
			})
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			r, err := a.l.AcquireRead(ctx)
			if err != nil {
				t.Fatal(err)
			}
			if waited := time.Since(began); waited > 20*time.Second {
				t.Errorf("granted after %v", waited)
			}
			if n := len(entriesOf(w, "set")); n != others+1 {
				t.Errorf("%d entries", n)
			}
			if err := r.Renew(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestTheOnlyReaderThatIsBrokenAfterAWriterIsToldSo(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		a, b := newReadWriter(w, "set"), newReadWriter(w, "set")
		w.Release(a.write())
		r := a.read()
		b.wire.SetFault(lab.Once(updates, lab.LoseReply))
		if err := b.c.Break(t.Context(), r.Record()); err != nil {
			t.Errorf("Break whose reply was lost: %v", err)
		}
		var lost *leasehold.LostError
		if err := r.Renew(t.Context()); !errors.As(err, &lost) || lost.Reason != leasehold.LostBroken {
			t.Errorf("a broken reader: %v", err)
		}
		r = a.read()
		held := r.Record()
		if err := b.c.Break(t.Context(), held); err != nil {
			t.Fatal(err)
		}
		var changed *leasehold.ChangedError
		if err := b.c.Break(t.Context(), held); !errors.As(err, &changed) || !changed.Now.Released {
			t.Errorf("broken again: %v", err)
		}
		if err := r.Release(t.Context()); !errors.As(err, &lost) || lost.Reason != leasehold.LostBroken {
			t.Errorf("a broken reader that leaves: %v", err)
		}
	})
}

func TestAReaderMakesNoRowIfItIsToExist(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		a, b := newReadWriter(w, "set"), newReadWriter(w, "set")
		for _, acquire := range []func(context.Context, ...leasehold.AcquireOption) (*leasehold.Lock, error){a.l.AcquireRead, a.l.AcquireWrite} {
			if _, err := acquire(t.Context(), leasehold.IfExists()); !errors.Is(err, leasehold.ErrNotFound) {
				t.Errorf("no row: %v", err)
			}
			b.write()
			waiter := begin(t.Context(), func(ctx context.Context, _ ...leasehold.AcquireOption) (*leasehold.Lock, error) {
				return acquire(ctx, leasehold.IfExists())
			})
			lab.Elapse(time.Minute)
			w.Delete("set")
			lab.Elapse(2 * time.Second)
			select {
			case err := <-waiter.err:
				if !errors.Is(err, leasehold.ErrNotFound) {
					t.Error(err)
				}
			default:
				t.Errorf("a waiter whose row was deleted made one: %v", w.Item("set"))
			}
			w.Delete("set")
		}
	})
}

func TestADamagedReadWriteRowIsNeverGranted(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		p := newReadWriter(w, "set")
		w.Release(p.write())
		w.Release(p.read(leasehold.NoWait()))
		row := w.Item("set")
		entry := func(m map[string]types.AttributeValue) types.AttributeValue {
			return &types.AttributeValueMemberM{Value: m}
		}
		for name, damage := range map[string]map[string]types.AttributeValue{
			"no readers":        {"readers": nil},
			"readers a list":    {"readers": &types.AttributeValueMemberL{}},
			"no tokens":         {"tokens": nil},
			"tokens a string":   {"tokens": lab.Str("x")},
			"no token":          {"fencingToken": nil},
			"a token too large": {"fencingToken": lab.Num("9007199254740991")},
			"a reader a string": {"readers": entry(map[string]types.AttributeValue{"g": lab.Str("x")})},
			"a reader of none":  {"readers": entry(map[string]types.AttributeValue{"g": entry(nil)})},
			"a writer a string": {"writer": lab.Str("x")},
			"a nameless intent": {"intent": entry(map[string]types.AttributeValue{})},
		} {
			item := map[string]types.AttributeValue{}
			for n, v := range row {
				item[n] = v
			}
			w.Put(item)
			w.Update("set", damage)
			before := w.Item("set")
			for _, acquire := range []func(context.Context, ...leasehold.AcquireOption) (*leasehold.Lock, error){p.l.AcquireRead, p.l.AcquireWrite} {
				if _, err := acquire(t.Context(), leasehold.NoWait()); !errors.Is(err, leasehold.ErrBadRecord) {
					t.Errorf("%s: %v", name, err)
				}
				lab.Elapse(time.Second) // what has landed is undone
				for attribute := range damage {
					if now := w.Item("set"); !reflect.DeepEqual(now[attribute], before[attribute]) {
						t.Errorf("%s: overwritten with %v", name, now[attribute])
					}
				}
			}
		}
	})
}

func TestTheSortKeyTellsTwoReadWriteLocksApart(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		spec := table.Spec{Name: "sorted", Layout: layout.Native{SortKey: "shard"}}
		if err := table.Create(t.Context(), w.DB, spec); err != nil {
			t.Fatal(err)
		}
		p := newReadWriter(w, "set", func(c *leasehold.Config) { c.Table, c.Layout = spec.Name, spec.Layout })
		one, other := p.write(leasehold.WithSortKey("1")), p.write(leasehold.WithSortKey("2"))
		if _, err := p.l.AcquireRead(t.Context(), leasehold.WithSortKey("1"), leasehold.NoWait()); !errors.Is(err, leasehold.ErrHeld) {
			t.Errorf("held: %v", err)
		}
		if _, err := p.l.AcquireRead(t.Context()); err == nil {
			t.Error("a key without its sort key was acquired")
		}
		w.Release(one)
		w.Release(p.read(leasehold.WithSortKey("1")))
		w.Release(other)
	})
}

func TestAReaderBehindAWaitingWriterLooksNoMoreOftenThanBehindAHolder(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		var waiting []leasehold.Event
		a, b, c := newReadWriter(w, "set"), newReadWriter(w, "set"), newReadWriter(w, "set", func(cfg *leasehold.Config) {
			cfg.OnEvent = func(_ context.Context, e leasehold.Event) {
				if e.Kind == leasehold.EventWaiting {
					waiting = append(waiting, e)
				}
			}
		})
		r := a.read()
		writer := begin(t.Context(), b.l.AcquireWrite)
		lab.Elapse(time.Second)
		reader := begin(t.Context(), c.l.AcquireRead)
		lab.Elapse(5 * time.Second)
		c.wire.Sent()
		lab.Elapse(5 * time.Minute)
		if n := len(c.wire.Sent()); n > 5*60*2*5/4 { // a look in half a second, and a quarter for chance
			t.Errorf("%d looks in 5 minutes", n)
		}
		if len(waiting) != 1 {
			t.Errorf("%d events say that it waits for the intent", len(waiting))
		}
		w.Release(r)
		wr := writer.within(t, 2*time.Second)
		lab.Elapse(5 * time.Second)
		if n := len(waiting); n != 2 || waiting[1].Holder.Grant != wr.Record().Grant {
			t.Errorf("%d events, the last %+v: the writer holds now", n, waiting[n-1].Holder)
		}
		w.Release(wr)
		w.Release(reader.within(t, 2*time.Second))
	})
}

func TestAReaderThatWatchedAnIntentForLongComesBeforeASecondWriter(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		inside, waiting := newReadWriter(w, "set"), newReadWriter(w, "set")
		writers := []*readWriter{newReadWriter(w, "set"), newReadWriter(w, "set"), newReadWriter(w, "set")}
		for range 20 {
			r := inside.read()
			var written atomic.Int64
			var all []*begun
			for _, p := range writers {
				all = append(all, begin(t.Context(), p.l.AcquireWrite))
			}
			lab.Elapse(5 * time.Second)
			reader := begin(t.Context(), waiting.l.AcquireRead)
			lab.Elapse(5 * time.Second)
			w.Release(r)
			for _, b := range all {
				go func() {
					lock := <-b.lock
					written.Add(1)
					time.Sleep(10 * time.Millisecond)
					w.Release(lock)
				}()
			}
			got := reader.within(t, 10*time.Second)
			if before := written.Load(); before > 1 {
				t.Errorf("%d writers came before a reader that had waited behind an intent", before)
			}
			w.Release(got)
			lab.Elapse(10 * time.Second)
		}
	})
}

func TestAnIntentWhoseReplyWasLostIsWithdrawnByAWriterThatGivesUp(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		a, b := newReadWriter(w, "set"), newReadWriter(w, "set")
		r := a.read()
		b.wire.SetFault(lab.Once(func(c lab.Call) bool { return updates(c) && !c.Grants() }, lab.LoseReply))
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		_, _ = b.l.AcquireWrite(ctx)
		lab.Elapse(100 * time.Millisecond)
		if w.Item("set")["intent"] != nil {
			t.Error("the intent is there still")
		}
		w.Release(r)
	})
}

func TestAnIntentThatLandsAfterItsWriterKeepsItsClientOutNotAtAll(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		a, b := newReadWriter(w, "set"), newReadWriter(w, "set")
		r := a.read()
		var late func() (*http.Response, error)
		b.wire.SetFault(lab.Once(func(c lab.Call) bool { return updates(c) && !c.Grants() }, func(req *lab.Request) (*http.Response, error) {
			late = req.Send
			w.Release(r)
			return nil, lab.ErrReset
		}))
		w.Release(b.write())
		_, _ = late()
		if w.Item("set")["intent"] == nil {
			t.Fatal("not what this test is about")
		}
		w.Release(b.read(leasehold.NoWait()))
	})
}
