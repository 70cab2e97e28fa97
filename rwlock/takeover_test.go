package rwlock_test

import (
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
)

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
