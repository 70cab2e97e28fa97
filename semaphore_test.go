package leasehold_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/layout"
	"github.com/leasehold-go/leasehold/semaphore"
	"github.com/leasehold-go/leasehold/table"
)

func (w *world) semaphore(c *leasehold.Client, key string, n int) *semaphore.Semaphore {
	w.t.Helper()
	s, err := semaphore.New(c, key, n)
	if err != nil {
		w.t.Fatal(err)
	}
	return s
}

func (w *world) permit(s *semaphore.Semaphore, opts ...leasehold.AcquireOption) *leasehold.Lock {
	w.t.Helper()
	lock, err := s.Acquire(w.t.Context(), opts...)
	if err != nil {
		w.t.Fatal(err)
	}
	return lock
}

// permits acquires n of them, which are free.
func (w *world) permits(s *semaphore.Semaphore, n int) map[string]*leasehold.Lock {
	w.t.Helper()
	held := map[string]*leasehold.Lock{}
	for range n {
		lock := w.permit(s, leasehold.NoWait())
		held[lock.Key().Partition] = lock
	}
	return held
}

func (w *world) resize(s *semaphore.Semaphore, n int) {
	w.t.Helper()
	if err := s.Resize(w.t.Context(), n); err != nil {
		w.t.Fatal(err)
	}
}

// waits runs an Acquire that is expected to wait.
func (w *world) waits(s *semaphore.Semaphore, opts ...leasehold.AcquireOption) <-chan *leasehold.Lock {
	granted := make(chan *leasehold.Lock, 1)
	go func() {
		lock, err := s.Acquire(w.t.Context(), opts...)
		if err != nil && !errors.Is(err, leasehold.ErrClosed) { // when the test is over
			w.t.Error(err)
		}
		granted <- lock
	}()
	elapse(2 * time.Second)
	select {
	case lock := <-granted:
		w.t.Fatalf("%v granted", lock.Key())
	default:
	}
	return granted
}

// touches reports whether a request is about the row of a semaphore under gpu.
func touches(c call) bool {
	return (c.op == "GetItem" || c.op == "UpdateItem") && strings.Contains(string(c.body), `"S":"gpu"`)
}

func TestASemaphoreIsHeldByNAtATime(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		const n = 3
		var mu sync.Mutex
		inside, most, done := 0, 0, 0
		var wg sync.WaitGroup
		for range 4 {
			c, _ := w.client(config())
			s := w.semaphore(c, "gpu", n)
			for range 3 {
				wg.Go(func() {
					for range 5 {
						permit, err := s.Acquire(t.Context())
						if err != nil {
							t.Error(err)
							return
						}
						mu.Lock()
						inside++
						most = max(most, inside)
						done++
						mu.Unlock()
						time.Sleep(time.Second)
						mu.Lock()
						inside--
						mu.Unlock()
						w.release(permit)
					}
				})
			}
		}
		wg.Wait()
		if most != n || done != 60 {
			t.Errorf("at most %d inside, %d times in all", most, done)
		}
	})
}

func TestOtherProcessesGetTheirPermit(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		c, _ := w.client(config())
		other, _ := w.client(config())
		ours, theirs := w.semaphore(c, "gpu", 2), w.semaphore(other, "gpu", 2)
		ctx, stop := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		for range 6 {
			wg.Go(func() {
				for ctx.Err() == nil {
					if permit, err := ours.Acquire(ctx); err == nil {
						time.Sleep(20 * time.Millisecond)
						w.release(permit)
					}
				}
			})
		}
		elapse(time.Second)
		for range 10 {
			bound, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			permit, err := theirs.Acquire(bound)
			cancel()
			if err != nil {
				t.Errorf("the other process: %v", err)
				break
			}
			w.release(permit)
		}
		stop()
		wg.Wait()
	})
}

func TestAPermitCostsAWriteAndAReadAndItsReleaseAWrite(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		c, wire := w.client(config())
		s := w.semaphore(c, "gpu", 3)
		for i, want := range []string{"GetItem UpdateItem UpdateItem GetItem UpdateItem", "UpdateItem GetItem UpdateItem"} {
			w.release(w.permit(s))
			if got := strings.Join(ops(wire.sent()), " "); got != want {
				t.Errorf("permit %d: requests %s", i, got)
			}
		}
		held := w.permits(s, 2)
		wire.sent()
		w.permit(s)
		if got := strings.Join(ops(wire.sent()), " "); got != "UpdateItem GetItem" {
			t.Errorf("beside permits of this process: requests %s", got)
		}
		if len(held) != 2 {
			t.Errorf("%d permits", len(held))
		}
		_ = c.Close(t.Context())
	})
}

func TestProcessesThatCountDifferentlyAreTold(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		c, wire := w.client(config())
		w.release(w.permit(w.semaphore(c, "gpu", 3)))
		wire.sent()
		for _, opts := range [][]leasehold.AcquireOption{nil, {leasehold.NoWait()}} {
			_, err := w.semaphore(c, "gpu", 4).Acquire(t.Context(), opts...)
			if !errors.Is(err, semaphore.ErrPermits) {
				t.Fatalf("error %v", err)
			}
			for _, want := range []string{"gpu", "locks", "3", "4", "Resize"} {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q does not say %s", err, want)
				}
			}
		}
		if got := strings.Join(ops(wire.sent()), " "); got != "GetItem GetItem" {
			t.Errorf("requests %s", got)
		}
	})
}

func TestASemaphoreFollowsAResize(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a, _ := w.client(config())
		b, _ := w.client(config())
		ours, theirs := w.semaphore(a, "gpu", 1), w.semaphore(b, "gpu", 1)
		w.release(w.permit(ours))
		w.release(w.permit(theirs))
		w.resize(theirs, 3)
		w.permit(ours) // whose confirmation tells it
		w.permit(ours, leasehold.NoWait())
		w.permit(ours, leasehold.NoWait())
		if _, err := ours.TryAcquire(t.Context()); !errors.Is(err, leasehold.ErrHeld) {
			t.Errorf("a fourth: %v", err)
		}
		if _, err := w.semaphore(a, "gpu", 1).Acquire(t.Context()); !errors.Is(err, semaphore.ErrPermits) {
			t.Errorf("a new one that counts as before: %v", err)
		}
		_ = a.Close(t.Context())
	})
}

func TestAPermitThatAResizeHasTakenAwayIsGivenBack(t *testing.T) {
	for name, opts := range map[string][]leasehold.AcquireOption{"renewed": nil, "by hand": {leasehold.WithoutRenewal()}} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				a, _ := w.client(config())
				b, wire := w.client(config())
				holder := w.semaphore(a, "gpu", 2)
				held := w.permits(holder, 2)
				waiter := w.semaphore(b, "gpu", 2)
				granted := w.waits(waiter, opts...)
				// As if it were told of it by its grant alone.
				var row int
				wire.setFault(func(ctx context.Context, c call, next func() (*http.Response, error)) (*http.Response, error) {
					if c.op == "GetItem" && row == 0 {
						row++
						w.resize(holder, 1)
					}
					return next()
				})
				w.release(held["gpu/1"])
				elapse(10 * time.Second)
				select {
				case lock := <-granted:
					t.Fatalf("%v granted", lock.Key())
				default:
				}
				if got := w.held(leasehold.Keys("gpu/0", "gpu/1")); !slices.Equal(got, []string{"gpu/0"}) || row != 1 {
					t.Errorf("held %v, row read: %d", got, row)
				}
				w.release(held["gpu/0"])
				if lock := <-granted; lock.Key().Partition != "gpu/0" {
					t.Errorf("%v granted", lock.Key())
				}
				_ = b.Close(t.Context())
			})
		})
	}
}

func TestHoldersAboveNKeepTheirPermitsAndAreShown(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		c, wire := w.client(config())
		s := w.semaphore(c, "gpu", 3)
		held := w.permits(s, 3)
		w.resize(s, 1)
		elapse(time.Minute)
		for key, lock := range held {
			if err := lock.Err(); err != nil {
				t.Errorf("%s: %v", key, err)
			}
		}
		w.release(held["gpu/1"])
		// Whoever has never acquired is shown the same.
		for name, s := range map[string]*semaphore.Semaphore{"who resized": s, "a new one": w.semaphore(c, "gpu", 1), "who counts differently": w.semaphore(c, "gpu", 7)} {
			wire.sent()
			holders, err := s.Holders(t.Context())
			var keys []string
			for _, r := range holders {
				keys = append(keys, r.Key.Partition)
			}
			if err != nil || !slices.Equal(keys, []string{"gpu/0", "gpu/2"}) || holders[0].Owner == "" {
				t.Errorf("%s: %v, error %v", name, keys, err)
			}
			if got := strings.Join(ops(wire.sent()), " "); got != "GetItem BatchGetItem" {
				t.Errorf("%s: requests %s", name, got)
			}
		}
		_ = c.Close(t.Context())
	})
}

func TestAWaiterLearnsOfMorePermits(t *testing.T) {
	for name, here := range map[string]bool{"by the same Semaphore": true, "by another process": false} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				a, _ := w.client(config())
				b, _ := w.client(config())
				holder, waiter := w.semaphore(a, "gpu", 1), w.semaphore(b, "gpu", 1)
				w.permit(holder)
				granted := w.waits(waiter)
				elapse(30 * time.Second)
				began := time.Now()
				most := 20*500*time.Millisecond + time.Second
				if here {
					w.resize(waiter, 2)
					most = 100 * time.Millisecond
				} else {
					w.resize(holder, 2)
				}
				var lock *leasehold.Lock
				select {
				case lock = <-granted:
				case <-time.After(time.Minute):
					t.Fatal("not granted")
				}
				if took := time.Since(began); took > most || lock.Key().Partition != "gpu/1" {
					t.Errorf("%v granted after %v", lock.Key(), took)
				}
				_, _ = a.Close(t.Context()), b.Close(t.Context())
			})
		})
	}
}

func TestALateReplyDoesNotUndoAResize(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		c, wire := w.client(config())
		s := w.semaphore(c, "gpu", 100)
		w.release(w.permit(s))
		wire.setFault(once(func(c call) bool { return c.op == "GetItem" }, slow(2*time.Second)))
		granted := make(chan *leasehold.Lock)
		go func() { granted <- w.permit(s) }()
		elapse(time.Second)
		w.resize(s, 1)
		<-granted
		records := len(w.scan())
		_, _ = s.TryAcquire(t.Context()) // of one permit, which may be held
		if now := len(w.scan()); now > records+1 || now == records+1 && w.item("gpu/0") == nil {
			t.Errorf("another permit was tried than that which there is: %d records, %d before", now, records)
		}
		closed(t, c)
	})
}

func TestAWaiterAsksForNothingTwiceWithoutAResize(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a, _ := w.client(config())
		b, wire := w.client(config())
		w.permits(w.semaphore(a, "gpu", 3), 3)
		waiter := w.semaphore(b, "gpu", 3)
		first := w.waits(waiter)
		for range 9 {
			w.waits(waiter)
		}
		wire.sent()
		const wait = 5 * time.Minute
		elapse(wait)
		rows, others := 0, 0
		for _, c := range wire.sent() {
			switch {
			case touches(c):
				rows++
			case c.op == "BatchGetItem":
				others++
			default:
				t.Fatalf("a waiter sends %s", c.op)
			}
		}
		// Ten waiters share what one of them reads.
		if rows < int(wait/(15*time.Second)) || rows > int(wait/(2500*time.Millisecond)) || others > 2*int(wait/(500*time.Millisecond)) {
			t.Errorf("%d reads of the row and %d of the permits in %v", rows, others, wait)
		}
		closed(t, a, b)
		<-first
	})
}

// closed closes clients, one of which others wait for.
func closed(t *testing.T, clients ...*leasehold.Client) {
	t.Helper()
	for _, c := range clients {
		if err := c.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

func TestAStoredNumberWhoseReplyIsLostIsOurs(t *testing.T) {
	row := func(c call) bool { return c.op == "UpdateItem" && touches(c) }
	t.Run("stored first", func(t *testing.T) {
		inBubble(t, func(t *testing.T, w *world) {
			a, wire := w.client(config())
			b, _ := w.client(config())
			wire.setFault(once(row, func(ctx context.Context, c call, next func() (*http.Response, error)) (*http.Response, error) {
				_, _ = next()
				w.resize(w.semaphore(b, "gpu", 9), 5) // another has changed it by the time we ask again
				return nil, errReset
			}))
			ours := w.semaphore(a, "gpu", 3)
			w.permits(ours, 5)
			_ = a.Close(t.Context())
		})
	})
	t.Run("by somebody else", func(t *testing.T) {
		inBubble(t, func(t *testing.T, w *world) {
			a, wire := w.client(config())
			b, _ := w.client(config())
			wire.setFault(once(row, func(_ context.Context, _ call, next func() (*http.Response, error)) (*http.Response, error) {
				w.resize(w.semaphore(b, "gpu", 9), 5)
				return next()
			}))
			if _, err := w.semaphore(a, "gpu", 3).Acquire(t.Context()); !errors.Is(err, semaphore.ErrPermits) {
				t.Errorf("error %v", err)
			}
		})
	})
	t.Run("resized", func(t *testing.T) {
		inBubble(t, func(t *testing.T, w *world) {
			c, wire := w.client(config())
			s := w.semaphore(c, "gpu", 3)
			w.release(w.permit(s))
			wire.sent()
			wire.setFault(once(row, loseReply))
			w.resize(s, 7)
			version := textOf(w.item("gpu"), "recordVersionNumber")
			if got := strings.Join(ops(wire.sent()), " "); got != "GetItem UpdateItem UpdateItem" {
				t.Errorf("requests %s", got)
			}
			w.resize(s, 7) // nothing to do
			if now := textOf(w.item("gpu"), "recordVersionNumber"); now != version || numberOf(w.item("gpu"), "permits") != "7" {
				t.Errorf("stored again: %v", w.item("gpu"))
			}
		})
	})
	t.Run("resized, refused after no answer", func(t *testing.T) {
		inBubble(t, func(t *testing.T, w *world) {
			c, wire := w.client(config())
			s := w.semaphore(c, "gpu", 3)
			w.resize(s, 3)
			var lost bool
			wire.setFault(func(ctx context.Context, c call, next func() (*http.Response, error)) (*http.Response, error) {
				switch {
				case !row(c):
					return next()
				case !lost:
					lost = true
					return loseReply(ctx, c, next)
				}
				return refusal(400, "AccessDeniedException"), nil
			})
			if err := s.Resize(t.Context(), 7); !errors.Is(err, leasehold.ErrUnknownOutcome) {
				t.Errorf("error %v", err)
			}
		})
	})
	t.Run("resized without an answer", func(t *testing.T) {
		inBubble(t, func(t *testing.T, w *world) {
			c, wire := w.client(config())
			s := w.semaphore(c, "gpu", 3)
			w.release(w.permit(s))
			wire.setFault(func(ctx context.Context, c call, next func() (*http.Response, error)) (*http.Response, error) {
				if row(c) {
					return hang(ctx)
				}
				return next()
			})
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			if err := s.Resize(ctx, 7); !errors.Is(err, leasehold.ErrUnknownOutcome) || !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("error %v", err)
			}
			closed(t, c) // waits for the last attempt
		})
	})
}

func numberOf(item map[string]types.AttributeValue, name string) string {
	if n, ok := item[name].(*types.AttributeValueMemberN); ok {
		return n.Value
	}
	return ""
}

func TestAResizeGoesOnWhenAnotherWasFirst(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a, wire := w.client(config())
		b, _ := w.client(config())
		ours, theirs := w.semaphore(a, "gpu", 3), w.semaphore(b, "gpu", 3)
		w.resize(ours, 3) // creates the row
		wire.setFault(once(func(c call) bool { return c.op == "UpdateItem" }, func(_ context.Context, _ call, next func() (*http.Response, error)) (*http.Response, error) {
			w.resize(theirs, 50)
			return next()
		}))
		w.resize(ours, 7)
		if item := w.item("gpu"); numberOf(item, "permits") != "7" || numberOf(item, "most") != "50" {
			t.Errorf("stored %v", item)
		}
	})
}

func TestARowThatWasDeletedIsStoredAgain(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		c, _ := w.client(config())
		s := w.semaphore(c, "gpu", 3)
		w.release(w.permit(s))
		w.resize(s, 2)
		w.delete("gpu")
		w.permit(s)
		if n := numberOf(w.item("gpu"), "permits"); n != "2" {
			t.Errorf("%s permits", n)
		}
		w.delete("gpu")
		w.resize(s, 4)
		if n := numberOf(w.item("gpu"), "permits"); n != "4" {
			t.Errorf("%s permits", n)
		}
		_ = c.Close(t.Context())
	})
}

func TestWhatIsNoSemaphoresRowIsAnErrorAndStays(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		c, _ := w.client(config())
		w.resize(w.semaphore(c, "gpu", 3), 3)
		good := w.item("gpu")
		w.release(w.acquire(c, "lock"))
		rows := map[string]map[string]types.AttributeValue{"a lock": w.item("lock"), "nothing but a key": {}}
		for name, change := range map[string]struct {
			attribute string
			value     types.AttributeValue
		}{
			"another kind":       {"kind", str("rw")},
			"no number":          {"permits", nil},
			"none":               {"permits", num("0")},
			"too many":           {"permits", num("101")},
			"no number at all":   {"permits", str("3")},
			"never so many":      {"most", num("2")},
			"no version":         {"recordVersionNumber", nil},
			"of unknown descent": {"grantId", nil},
		} {
			row := map[string]types.AttributeValue{}
			for attribute, v := range good {
				row[attribute] = v
			}
			row[change.attribute] = change.value
			if change.value == nil {
				delete(row, change.attribute)
			}
			rows[name] = row
		}
		for name, row := range rows {
			row["key"] = str("gpu")
			w.put(row)
			s := w.semaphore(c, "gpu", 3)
			_, acquire := s.Acquire(t.Context())
			_, holders := s.Holders(t.Context())
			for what, err := range map[string]error{"acquire": acquire, "holders": holders, "resize": s.Resize(t.Context(), 2)} {
				var bad *leasehold.RecordError
				if !errors.As(err, &bad) || bad.Key.Partition != "gpu" || !strings.Contains(err.Error(), "choose another key") {
					t.Errorf("%s, %s: %v", name, what, err)
				}
			}
			if got := w.item("gpu"); len(got) != len(row) {
				t.Errorf("%s: overwritten with %v", name, got)
			}
		}
	})
}

func TestTheRowOfASemaphoreIsNeverGrantedNorListed(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		c, _ := w.client(config())
		w.release(w.permit(w.semaphore(c, "gpu", 3)))
		for range 2 {
			if _, err := c.TryAcquire(t.Context(), "gpu"); !errors.Is(err, leasehold.ErrBadRecord) {
				t.Errorf("granted as a lock: %v", err)
			}
			elapse(200 * 24 * time.Hour) // nobody renews it
		}
		n := 0
		for r, err := range c.List(t.Context()) {
			if n++; err != nil || !strings.HasPrefix(r.Key.Partition, "gpu/") {
				t.Errorf("listed %v: %v", r.Key, err)
			}
		}
		w.update("gpu", map[string]types.AttributeValue{"permits": nil})
		var bad *leasehold.RecordError
		for _, err := range c.List(t.Context()) {
			if err != nil && !errors.As(err, &bad) {
				t.Error(err)
			}
		}
		if n != 1 || bad == nil || bad.Key.Partition != "gpu" {
			t.Errorf("%d listed; damaged: %v", n, bad)
		}
		item := w.item("gpu")
		for _, name := range []string{"ownerName", "leaseDuration", "recordVersionNumber"} {
			if textOf(item, name) == "" {
				t.Errorf("%s is missing, which a listing of the Java client needs", name)
			}
		}
		if ms, err := strconv.ParseInt(textOf(item, "leaseDuration"), 10, 64); err != nil || time.Duration(ms)*time.Millisecond < 50*365*24*time.Hour {
			t.Errorf("a client that does not know kinds takes it over after %d ms: %v", ms, err)
		}
		_ = c.Close(t.Context())
	})
}

func TestWhatASemaphoreCannotDo(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		for _, l := range []layout.Layout{layout.AWSLabs{}, layout.Dynamolock{}, layout.PythonDynamoDBLock{}, layout.DyndbMutex{}, layout.DynamoDLM{NoSlots: true}} {
			c, _ := w.client(locksOf("locks", l))
			var unsupported *leasehold.UnsupportedError
			if _, err := semaphore.New(c, "gpu", 3); !errors.As(err, &unsupported) || *unsupported != (leasehold.UnsupportedError{Layout: l.Name(), Feature: "semaphores"}) {
				t.Errorf("%s: %v", l.Name(), err)
			}
		}
		if _, err := semaphore.New(nil, "gpu", 3); err == nil {
			t.Error("a nil client was taken")
		}
		c, wire := w.client(config())
		for _, n := range []int{-1, 0, 101} {
			if _, err := semaphore.New(c, "gpu", n); err == nil || !strings.Contains(err.Error(), "from 1 to 100") {
				t.Errorf("%d permits: %v", n, err)
			}
			if err := w.semaphore(c, "gpu", 3).Resize(t.Context(), n); err == nil || !strings.Contains(err.Error(), "from 1 to 100") {
				t.Errorf("resized to %d: %v", n, err)
			}
		}
		for _, key := range []string{"", "leasehold/session/abc", strings.Repeat("k", 2046)} {
			if _, err := semaphore.New(c, key, 1); err == nil {
				t.Errorf("a semaphore under a key of %d bytes", len(key))
			}
		}
		for _, o := range []leasehold.AcquireOption{leasehold.IfExists(), leasehold.WithSortKey("x")} {
			if _, err := w.semaphore(c, "gpu", 3).Acquire(t.Context(), o); !errors.Is(err, errors.ErrUnsupported) {
				t.Errorf("%T: %v", o, err)
			}
		}
		ended, cancel := context.WithCancelCause(t.Context())
		cancel(errReset)
		if _, err := w.semaphore(c, "gpu", 3).Acquire(ended); !errors.Is(err, errReset) {
			t.Errorf("under an ended context: %v", err)
		}
		if sent := wire.sent(); len(sent) != 0 {
			t.Errorf("%d requests for what cannot be had", len(sent))
		}
	})
}

func TestATryForAPermitSaysThatAllAreHeld(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a, _ := w.client(config())
		b, wire := w.client(config())
		w.permits(w.semaphore(a, "gpu", 3), 3)
		s := w.semaphore(b, "gpu", 3)
		_, err := s.TryAcquire(t.Context())
		var held *leasehold.HeldError
		if !errors.As(err, &held) || held.Holder.Grant == "" || !strings.Contains(err.Error(), "all 3 permits of gpu are held") {
			t.Errorf("error %v", err)
		}
		// Not answered, it gives up.
		wire.setFault(func(context.Context, call, func() (*http.Response, error)) (*http.Response, error) {
			return refusal(400, "ThrottlingException"), nil
		})
		for name, s := range map[string]*semaphore.Semaphore{"agreed": s, "new": w.semaphore(b, "gpu", 3)} {
			began := time.Now()
			_, err := s.TryAcquire(t.Context())
			var op *leasehold.OpError
			if took := time.Since(began); !errors.As(err, &op) || took < 9*time.Second || took > 20*time.Second {
				t.Errorf("%s: after %v: %v", name, took, err)
			}
		}
		_ = a.Close(t.Context())
	})
}

// A grant that is not confirmed is given back, however the confirmation fails.
func TestAPermitThatCannotBeConfirmedIsGivenBack(t *testing.T) {
	for name, c := range map[string]struct {
		opts  []leasehold.AcquireOption
		fault func(context.Context) (*http.Response, error)
		is    error
	}{
		"the wait ends":  {nil, hang, context.DeadlineExceeded},
		"a try gives up": {[]leasehold.AcquireOption{leasehold.NoWait()}, func(context.Context) (*http.Response, error) { return nil, errReset }, errReset},
		"it is refused":  {nil, func(context.Context) (*http.Response, error) { return refusal(400, "AccessDeniedException"), nil }, nil},
		"by hand":        {[]leasehold.AcquireOption{leasehold.WithoutRenewal()}, hang, context.DeadlineExceeded},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				client, wire := w.client(config())
				s := w.semaphore(client, "gpu", 1)
				w.release(w.permit(s))
				wire.setFault(func(ctx context.Context, sent call, next func() (*http.Response, error)) (*http.Response, error) {
					if sent.op == "GetItem" {
						return c.fault(ctx)
					}
					return next()
				})
				ctx, cancel := context.WithTimeout(t.Context(), 12*time.Second)
				defer cancel()
				_, err := s.Acquire(ctx, c.opts...)
				if err == nil || c.is != nil && !errors.Is(err, c.is) {
					t.Errorf("error %v", err)
				}
				if held := w.held(leasehold.Keys("gpu/0")); len(held) > 0 || len(client.Held()) > 0 {
					t.Errorf("left held: %v", held)
				}
			})
		})
	}
}

func TestAPermitLostBeforeItIsConfirmedIsSoughtAgain(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		c, wire := w.client(config())
		s := w.semaphore(c, "gpu", 1)
		w.release(w.permit(s))
		wire.setFault(once(func(c call) bool { return c.op == "GetItem" }, func(ctx context.Context, _ call, next func() (*http.Response, error)) (*http.Response, error) {
			for r, err := range c.List(ctx) {
				if err != nil || c.Break(ctx, r) != nil {
					t.Error("not broken")
				}
			}
			_ = c.Held()[0].Renew(ctx) // which tells it
			return hang(ctx)
		}))
		lock := w.permit(s)
		if err := lock.Err(); err != nil {
			t.Error(err)
		}
		w.release(lock)
	})
}

func TestWithoutRenewalAPermitLeavesNothingInTheBackground(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a, _ := w.client(config())
		b, wire := w.client(config())
		s := w.semaphore(b, "gpu", 1)
		lock := w.permit(s, leasehold.WithoutRenewal())
		w.release(lock)
		w.permit(w.semaphore(a, "gpu", 1))
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		if _, err := s.Acquire(ctx, leasehold.WithoutRenewal()); !errors.Is(err, leasehold.ErrHeld) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v", err)
		}
		wire.sent()
		elapse(time.Minute)
		if n := len(wire.sent()); n != 0 {
			t.Errorf("%d requests after it returned", n)
		}
		_ = a.Close(t.Context())
	})
}

func TestAContextThatHoldsAPermitGetsAnotherOrSharesIt(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		c, wire := w.client(config())
		s := w.semaphore(c, "gpu", 2)
		held := w.permits(s, 2)
		outer := held["gpu/1"]
		w.release(held["gpu/0"])
		second, err := s.Acquire(outer.Context())
		if err != nil || second.Key().Partition != "gpu/0" {
			t.Fatalf("%v, error %v", second, err)
		}
		if _, err := s.Acquire(second.Context()); !errors.Is(err, leasehold.ErrDeadlock) {
			t.Errorf("with both held by the context: %v", err)
		}
		w.release(second)
		w.resize(s, 1) // above n it is shared as well
		wire.sent()
		shared, err := s.Acquire(outer.Context(), leasehold.Reentrant())
		if err != nil || shared.Token() != outer.Token() || len(wire.sent()) != 0 {
			t.Fatalf("%v, error %v", shared, err)
		}
		w.release(shared)
		if err := outer.Err(); err != nil {
			t.Error(err)
		}
		w.release(outer)
		w.release(w.permit(s, leasehold.Reentrant()))
	})
}

func TestPermitsInATableWithASortKey(t *testing.T) {
	for value, want := range map[string]string{"": "-", "eu": "eu"} {
		t.Run(want, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				l := layout.Native{SortKey: "shard", SortValue: value}
				if err := table.Create(t.Context(), w.db, table.Spec{Name: "sorted", Layout: l}); err != nil {
					t.Fatal(err)
				}
				c, _ := w.client(locksOf("sorted", l))
				lock := w.permit(w.semaphore(c, "gpu", 1))
				if lock.Key() != (leasehold.Key{Partition: "gpu/0", Sort: want}) {
					t.Errorf("%v granted", lock.Key())
				}
				if _, err := c.Get(t.Context(), "gpu", leasehold.WithSortKey(want)); !errors.Is(err, leasehold.ErrBadRecord) {
					t.Errorf("no row there: %v", err)
				}
				_ = c.Close(t.Context())
			})
		})
	}
}

func TestThePermitsOfDynamoDLMAreItsSlots(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		l := layout.DynamoDLM{}
		if err := table.Create(t.Context(), w.db, table.Spec{Name: "dlm", Layout: l}); err != nil {
			t.Fatal(err)
		}
		cfg := locksOf("dlm", l)
		a, _ := w.client(cfg)
		b, wire := w.client(cfg)
		s := w.semaphore(b, "gpu", 3)
		other := w.acquire(a, "gpu", leasehold.WithSortKey("1")) // slot 1 of a process that does not know semaphores
		held := []*leasehold.Lock{w.permit(s), w.permit(s)}
		slots := []string{held[0].Key().Sort, held[1].Key().Sort}
		slices.Sort(slots)
		if !slices.Equal(slots, []string{"0", "2"}) || held[0].Key().Partition != "gpu" {
			t.Errorf("slots %v of %s", slots, held[0].Key().Partition)
		}
		for _, c := range wire.sent() {
			if c.op != "UpdateItem" {
				t.Errorf("%s: records of dynamo-dlm do not say how many slots there are", c.op)
			}
		}
		if _, err := s.TryAcquire(t.Context()); !errors.Is(err, leasehold.ErrHeld) {
			t.Errorf("a fourth: %v", err)
		}
		var unsupported *leasehold.UnsupportedError
		if err := s.Resize(t.Context(), 4); !errors.As(err, &unsupported) || *unsupported != (leasehold.UnsupportedError{Layout: "dynamo-dlm", Feature: "Resize"}) {
			t.Errorf("resize: %v", err)
		}
		w.release(other)
		dead, _ := w.client(cfg)
		if _, err := dead.Acquire(t.Context(), "gpu", leasehold.WithSortKey("1"), leasehold.WithoutRenewal()); err != nil {
			t.Fatal(err)
		}
		if holders, err := s.Holders(t.Context()); err != nil || len(holders) != 3 {
			t.Errorf("%d holders: %v", len(holders), err)
		}
		elapse(30 * time.Second) // dynamo-dlm leaves the records of its dead in place
		if holders, err := s.Holders(t.Context()); err != nil || len(holders) != 2 {
			t.Errorf("%d holders, one of whom is dead: %v", len(holders), err)
		}
		closed(t, a, b)
		_ = dead.Close(t.Context())
	})
}

func TestHoldersLeavesOutWhatASharedLeaseHasFreed(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a, _ := w.client(sharedConfig())
		b, _ := w.client(config())
		w.permits(w.semaphore(a, "gpu", 3), 2)
		s := w.semaphore(b, "gpu", 3)
		w.permit(s)
		if holders, err := s.Holders(t.Context()); err != nil || len(holders) != 3 {
			t.Errorf("%d holders: %v", len(holders), err)
		}
		closed(t, a)
		if holders, err := s.Holders(t.Context()); err != nil || len(holders) != 1 {
			t.Errorf("%d holders: %v", len(holders), err)
		}
		closed(t, b)
	})
}

func TestHoldersGoesOnPastADamagedRecord(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		c, _ := w.client(config())
		s := w.semaphore(c, "gpu", 100)
		for i := range 100 {
			if i%2 == 0 {
				w.put(map[string]types.AttributeValue{"key": str(fmt.Sprintf("gpu/%d", i))})
			}
		}
		lock := w.permit(s)
		holders, err := s.Holders(t.Context())
		var bad *leasehold.RecordError
		if len(holders) != 1 || holders[0].Grant != lock.Record().Grant || !errors.As(err, &bad) {
			t.Errorf("%d holders, error %v", len(holders), err)
		}
		closed(t, c)
	})
}

func TestAPermitOfADeadHolderIsTakenOver(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		dead, wire := w.client(config())
		alive, _ := w.client(config())
		w.permit(w.semaphore(dead, "gpu", 2))
		w.permit(w.semaphore(alive, "gpu", 2))
		wire.setFault(cut)
		c, _ := w.client(config())
		began := time.Now()
		lock := w.permit(w.semaphore(c, "gpu", 2))
		if took := time.Since(began); took < 20*time.Second || took > 20*time.Second+100*time.Millisecond {
			t.Errorf("granted after %v, a lease is 20s", took)
		}
		if _, over := lock.TookOver(); !over {
			t.Error("not taken over")
		}
		closed(t, c, alive)
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		_ = dead.Close(gone)
	})
}

func TestCloseEndsWhoWaitsForAPermit(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a, _ := w.client(config())
		b, wire := w.client(config())
		w.permit(w.semaphore(a, "gpu", 1))
		for name, stuck := range map[string]func(call) bool{
			"agreeing":   func(c call) bool { return c.op == "GetItem" && touches(c) },
			"waiting":    func(call) bool { return false },
			"confirming": func(c call) bool { return c.op == "GetItem" },
		} {
			c, wire := w.client(config())
			key := "gpu"
			if name == "confirming" {
				key = "free"
				w.resize(w.semaphore(a, key, 1), 1)
			}
			s := w.semaphore(c, key, 1)
			if name == "confirming" {
				w.release(w.permit(s))
			}
			wire.setFault(func(ctx context.Context, c call, next func() (*http.Response, error)) (*http.Response, error) {
				if stuck(c) {
					return hang(ctx)
				}
				return next()
			})
			ended := make(chan error)
			go func() {
				_, err := s.Acquire(t.Context())
				ended <- err
			}()
			elapse(time.Second)
			closed(t, c)
			if err := <-ended; !errors.Is(err, leasehold.ErrClosed) {
				t.Errorf("%s: %v", name, err)
			}
		}
		if held := w.held(leasehold.Keys("free/0")); len(held) > 0 {
			t.Errorf("left held: %v", held)
		}
		closed(t, b)
		s := w.semaphore(b, "gpu", 1)
		_, acquire := s.Acquire(t.Context())
		_, holders := s.Holders(t.Context())
		for name, err := range map[string]error{"acquire": acquire, "holders": holders, "resize": s.Resize(t.Context(), 2)} {
			if !errors.Is(err, leasehold.ErrClosed) {
				t.Errorf("%s: %v", name, err)
			}
		}
		if n := len(wire.sent()); n != 0 {
			t.Errorf("%d requests after Close", n)
		}
		closed(t, a)
	})
}
