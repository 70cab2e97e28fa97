package rwlock_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
)

func TestAReadLockFencesItsCommits(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		w.Work()
		a, b := newReadWriter(w, "set"), newReadWriter(w, "set")
		r := a.read()
		other := b.read()
		if err := r.Commit(t.Context(), lab.Writes(lab.Note("log", "r"))); err != nil {
			t.Fatal(err)
		}
		guard := r.Guards()[0]
		w.Release(r)
		if err := w.Transact(guard, lab.Note("log", "late")); err == nil {
			t.Error("a guard held after its reader had left")
		}
		w.Release(other)
		wr := b.write()
		guard = wr.Guards()[0]
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
				guard := lock.Guards()[0]
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
