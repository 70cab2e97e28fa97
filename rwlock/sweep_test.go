package rwlock_test

import (
	"bytes"
	"math"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
)

// deadReaders leaves n readers in a row whose process has died.
func deadReaders(w *lab.World, key string, n int) {
	w.T.Helper()
	p := newReadWriter(w, key)
	for range n {
		p.read()
	}
	p.wire.SetFault(lab.Cut)
}

func readersOf(w *lab.World, key string) int {
	w.T.Helper()
	records, err := holdersOf(w, key)
	if err != nil {
		w.T.Fatal(err)
	}
	return len(records)
}

// holdersOf lists who holds a key.
func holdersOf(w *lab.World, key string) (held []leasehold.Record, err error) {
	c, _ := w.Client(lab.Config())
	for r, err := range c.List(w.T.Context(), leasehold.ListPrefix(key)) {
		if err != nil {
			return nil, err
		}
		if !r.Released {
			held = append(held, r)
		}
	}
	return held, nil
}

func TestDeadReadersAreRemovedByThoseWhoPass(t *testing.T) {
	for name, pass := range map[string]func(p *readWriter){
		"one that reads on and on": func(p *readWriter) {
			lock := p.read()
			lab.Elapse(2 * time.Minute)
			p.w.Release(lock)
		},
		"one that comes and goes": func(p *readWriter) {
			for range 120 {
				p.w.Release(p.read())
				lab.Elapse(time.Second)
			}
		},
		"one that does nothing in the background": func(p *readWriter) {
			for range 120 {
				p.w.Release(p.read(leasehold.WithoutRenewal()))
				lab.Elapse(time.Second)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			lab.InBubble(t, func(t *testing.T, w *lab.World) {
				deadReaders(w, "set", 90)
				p := newReadWriter(w, "set")
				p.wire.Meter = &lab.Meter{}
				w.Release(p.read())
				if used := p.wire.Meter.Reset(); used.Write < 40 {
					t.Fatalf("%v units beside 90 readers: they are not there", used.Write)
				}
				pass(p)
				if n := readersOf(w, "set"); n != 0 {
					t.Errorf("%d of 90 dead readers are left", n)
				}
				p.wire.Meter.Reset()
				w.Release(p.read())
				if used := p.wire.Meter.Reset(); used.Write > 2 {
					t.Errorf("%v units", used.Write)
				}
			})
		})
	}
}

func TestAReaderThatRenewsIsNeverRemovedByThoseWhoPass(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		slow, p := newReadWriter(w, "set"), newReadWriter(w, "set")
		lock := slow.read()
		// Its renewals land, but for those of more than half of each minute.
		var until atomic.Int64
		slow.wire.SetFault(func(r *lab.Request) (*http.Response, error) {
			if time.Now().UnixNano() < until.Load() {
				return lab.Cut(r)
			}
			return r.Send()
		})
		passing := p.read()
		for range 20 {
			until.Store(time.Now().Add(12 * time.Second).UnixNano())
			lab.Elapse(25 * time.Second)
		}
		if err := lock.Err(); err != nil {
			t.Error(err)
		}
		w.Release(passing)
		w.Release(lock)
	})
}

func TestAReaderWhoseRenewalArrivesBeforeItsRemovalStays(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		late, p := newReadWriter(w, "set"), newReadWriter(w, "set")
		lock, passing := late.read(leasehold.WithoutRenewal()), p.read()
		lab.Elapse(17 * time.Second)
		// Sent while it was trusted, and long on its way.
		var arrive func() (*http.Response, error)
		late.wire.SetFault(func(r *lab.Request) (*http.Response, error) {
			if arrive == nil {
				arrive = r.Send
			}
			return lab.Cut(r)
		})
		if err := lock.Renew(t.Context()); err == nil {
			t.Fatal("it was renewed")
		}
		p.wire.SetFault(lab.Once(sweeps, func(r *lab.Request) (*http.Response, error) {
			_, _ = arrive()
			arrive = nil
			return r.Send()
		}))
		lab.Elapse(30 * time.Second)
		if arrive != nil {
			t.Fatal("nothing was to be removed")
		}
		if n := readersOf(w, "set"); n != 2 {
			t.Errorf("%d readers, want the one renewed and the one that passes", n)
		}
		w.Release(passing)
	})
}

// sweeps reports whether the request removes dead readers and nothing else.
func sweeps(c lab.Call) bool {
	return c.Op == "UpdateItem" && bytes.Contains(c.Body, []byte(`"UpdateExpression":"REMOVE `)) && bytes.Contains(c.Body, []byte("attribute_type("))
}

func TestAReaderWithALeaseWithoutEndIsNeverRemoved(t *testing.T) { // twice its lease is more than a Duration holds
	for _, term := range []time.Duration{math.MaxInt64, math.MaxInt64/2 + 1} {
		lab.InBubble(t, func(t *testing.T, w *lab.World) {
			silent, p, writer := newReadWriter(w, "set"), newReadWriter(w, "set"), newReadWriter(w, "set")
			lock := silent.read(leasehold.WithLease(term), leasehold.WithoutRenewal())
			for range 3 {
				w.Release(p.read())
				lab.Elapse(time.Minute)
			}
			if _, err := writer.l.AcquireWrite(t.Context(), leasehold.NoWait()); err == nil {
				t.Error("a writer came in beside a reader")
			}
			if n := readersOf(w, "set"); n != 1 || lock.Err() != nil {
				t.Errorf("%d readers are left of one with a lease of %v: %v", n, term, lock.Err())
			}
			w.Release(lock)
		})
	}
}
