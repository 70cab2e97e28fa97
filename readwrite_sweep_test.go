package leasehold_test

import (
	"bytes"
	"context"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leasehold-go/leasehold"
)

// deadReaders leaves n readers in a row whose process has died.
func (w *world) deadReaders(key string, n int) {
	w.t.Helper()
	p := w.readWriter(key)
	for range n {
		p.read()
	}
	p.wire.setFault(cut)
}

func (w *world) readersOf(key string) int {
	w.t.Helper()
	records, err := w.getAll(key)
	if err != nil {
		w.t.Fatal(err)
	}
	return len(records)
}

// getAll lists who holds a key.
func (w *world) getAll(key string) (held []leasehold.Record, err error) {
	c, _ := w.client(config())
	for r, err := range c.List(w.t.Context(), leasehold.ListPrefix(key)) {
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
			elapse(2 * time.Minute)
			p.w.release(lock)
		},
		"one that comes and goes": func(p *readWriter) {
			for range 120 {
				p.w.release(p.read())
				elapse(time.Second)
			}
		},
		"one that does nothing in the background": func(p *readWriter) {
			for range 120 {
				p.w.release(p.read(leasehold.WithoutRenewal()))
				elapse(time.Second)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				w.deadReaders("set", 90)
				p := w.readWriter("set")
				p.wire.meter = &meter{}
				w.release(p.read())
				if used := p.wire.meter.reset(); used.write < 40 {
					t.Fatalf("%v units beside 90 readers: they are not there", used.write)
				}
				pass(p)
				if n := w.readersOf("set"); n != 0 {
					t.Errorf("%d of 90 dead readers are left", n)
				}
				p.wire.meter.reset()
				w.release(p.read())
				if used := p.wire.meter.reset(); used.write > 2 {
					t.Errorf("%v units", used.write)
				}
			})
		})
	}
}

func TestAReaderThatRenewsIsNeverRemovedByThoseWhoPass(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		slow, p := w.readWriter("set"), w.readWriter("set")
		lock := slow.read()
		// Its renewals land, but for those of more than half of each minute.
		var until atomic.Int64
		slow.wire.setFault(func(ctx context.Context, _ call, next func() (*http.Response, error)) (*http.Response, error) {
			if time.Now().UnixNano() < until.Load() {
				return hang(ctx)
			}
			return next()
		})
		passing := p.read()
		for range 20 {
			until.Store(time.Now().Add(12 * time.Second).UnixNano())
			elapse(25 * time.Second)
		}
		if err := lock.Err(); err != nil {
			t.Error(err)
		}
		w.release(passing)
		w.release(lock)
	})
}

func TestAReaderWhoseRenewalArrivesBeforeItsRemovalStays(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		late, p := w.readWriter("set"), w.readWriter("set")
		lock, passing := late.read(leasehold.WithoutRenewal()), p.read()
		elapse(17 * time.Second)
		// Sent while it was trusted, and long on its way.
		var arrive func() (*http.Response, error)
		late.wire.setFault(func(ctx context.Context, _ call, next func() (*http.Response, error)) (*http.Response, error) {
			if arrive == nil {
				arrive = next
			}
			return hang(ctx)
		})
		if err := lock.Renew(t.Context()); err == nil {
			t.Fatal("it was renewed")
		}
		p.wire.setFault(once(call.sweeps, func(_ context.Context, _ call, next func() (*http.Response, error)) (*http.Response, error) {
			_, _ = arrive()
			arrive = nil
			return next()
		}))
		elapse(30 * time.Second)
		if arrive != nil {
			t.Fatal("nothing was to be removed")
		}
		if n := w.readersOf("set"); n != 2 {
			t.Errorf("%d readers, want the one renewed and the one that passes", n)
		}
		w.release(passing)
	})
}

// sweeps reports whether the request removes dead readers and nothing else.
func (c call) sweeps() bool {
	return c.op == "UpdateItem" && bytes.Contains(c.body, []byte(`"UpdateExpression":"REMOVE `)) && bytes.Contains(c.body, []byte("attribute_type("))
}
