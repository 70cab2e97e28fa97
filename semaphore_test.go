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
	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/layout"
	"github.com/leasehold-go/leasehold/semaphore"
	"github.com/leasehold-go/leasehold/table"
)

func newSemaphore(w *lab.World, c *leasehold.Client, key string, n int) *semaphore.Semaphore {
	w.T.Helper()
	s, err := semaphore.New(c, key, n)
	if err != nil {
		w.T.Fatal(err)
	}
	return s
}

func takePermit(w *lab.World, s *semaphore.Semaphore, opts ...leasehold.AcquireOption) *leasehold.Lock {
	w.T.Helper()
	lock, err := s.Acquire(w.T.Context(), opts...)
	if err != nil {
		w.T.Fatal(err)
	}
	return lock
}

// permits acquires n of them, which are free.
func takePermits(w *lab.World, s *semaphore.Semaphore, n int) map[string]*leasehold.Lock {
	w.T.Helper()
	held := map[string]*leasehold.Lock{}
	for range n {
		lock := takePermit(w, s, leasehold.NoWait())
		held[lock.Key().Partition] = lock
	}
	return held
}

func resizeTo(w *lab.World, s *semaphore.Semaphore, n int) {
	w.T.Helper()
	if err := s.Resize(w.T.Context(), n); err != nil {
		w.T.Fatal(err)
	}
}

// waits runs an Acquire that is expected to wait.
func mustWait(w *lab.World, s *semaphore.Semaphore, opts ...leasehold.AcquireOption) <-chan *leasehold.Lock {
	granted := make(chan *leasehold.Lock, 1)
	go func() {
		lock, err := s.Acquire(w.T.Context(), opts...)
		if err != nil && !errors.Is(err, leasehold.ErrClosed) { // when the test is over
			w.T.Error(err)
		}
		granted <- lock
	}()
	lab.Elapse(2 * time.Second)
	select {
	case lock := <-granted:
		w.T.Fatalf("%v granted", lock.Key())
	default:
	}
	return granted
}

// touches reports whether a request is about the row of a semaphore under gpu.
func touches(c lab.Call) bool {
	return (c.Op == "GetItem" || c.Op == "UpdateItem") && strings.Contains(string(c.Body), `"S":"gpu"`)
}

func TestASemaphoreIsHeldByNAtATime(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		const n = 3
		var mu sync.Mutex
		inside, most, done := 0, 0, 0
		var wg sync.WaitGroup
		for range 4 {
			c, _ := w.Client(lab.Config())
			s := newSemaphore(w, c, "gpu", n)
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
						w.Release(permit)
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
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, _ := w.Client(lab.Config())
		other, _ := w.Client(lab.Config())
		ours, theirs := newSemaphore(w, c, "gpu", 2), newSemaphore(w, other, "gpu", 2)
		ctx, stop := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		for range 6 {
			wg.Go(func() {
				for ctx.Err() == nil {
					if permit, err := ours.Acquire(ctx); err == nil {
						time.Sleep(20 * time.Millisecond)
						w.Release(permit)
					}
				}
			})
		}
		lab.Elapse(time.Second)
		for range 10 {
			bound, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			permit, err := theirs.Acquire(bound)
			cancel()
			if err != nil {
				t.Errorf("the other process: %v", err)
				break
			}
			w.Release(permit)
		}
		stop()
		wg.Wait()
	})
}

func TestAPermitCostsAWriteAndAReadAndItsReleaseAWrite(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.Config())
		s := newSemaphore(w, c, "gpu", 3)
		for i, want := range []string{"GetItem UpdateItem UpdateItem GetItem UpdateItem", "UpdateItem GetItem UpdateItem"} {
			w.Release(takePermit(w, s))
			if got := strings.Join(ops(wire.Sent()), " "); got != want {
				t.Errorf("permit %d: requests %s", i, got)
			}
		}
		held := takePermits(w, s, 2)
		wire.Sent()
		takePermit(w, s)
		if got := strings.Join(ops(wire.Sent()), " "); got != "UpdateItem GetItem" {
			t.Errorf("beside permits of this process: requests %s", got)
		}
		if len(held) != 2 {
			t.Errorf("%d permits", len(held))
		}
		_ = c.Close(t.Context())
	})
}

func TestProcessesThatCountDifferentlyAreTold(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.Config())
		w.Release(takePermit(w, newSemaphore(w, c, "gpu", 3)))
		wire.Sent()
		for _, opts := range [][]leasehold.AcquireOption{nil, {leasehold.NoWait()}} {
			_, err := newSemaphore(w, c, "gpu", 4).Acquire(t.Context(), opts...)
			if !errors.Is(err, semaphore.ErrPermits) {
				t.Fatalf("error %v", err)
			}
			for _, want := range []string{"gpu", "locks", "3", "4", "Resize"} {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q does not say %s", err, want)
				}
			}
		}
		if got := strings.Join(ops(wire.Sent()), " "); got != "GetItem GetItem" {
			t.Errorf("requests %s", got)
		}
	})
}

func TestASemaphoreFollowsAResize(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		a, _ := w.Client(lab.Config())
		b, _ := w.Client(lab.Config())
		ours, theirs := newSemaphore(w, a, "gpu", 1), newSemaphore(w, b, "gpu", 1)
		w.Release(takePermit(w, ours))
		w.Release(takePermit(w, theirs))
		resizeTo(w, theirs, 3)
		takePermit(w, ours) // whose confirmation tells it
		takePermit(w, ours, leasehold.NoWait())
		takePermit(w, ours, leasehold.NoWait())
		if _, err := ours.TryAcquire(t.Context()); !errors.Is(err, leasehold.ErrHeld) {
			t.Errorf("a fourth: %v", err)
		}
		if _, err := newSemaphore(w, a, "gpu", 1).Acquire(t.Context()); !errors.Is(err, semaphore.ErrPermits) {
			t.Errorf("a new one that counts as before: %v", err)
		}
		_ = a.Close(t.Context())
	})
}

func TestAPermitThatAResizeHasTakenAwayIsGivenBack(t *testing.T) {
	for name, opts := range map[string][]leasehold.AcquireOption{"renewed": nil, "by hand": {leasehold.WithoutRenewal()}} {
		t.Run(name, func(t *testing.T) {
			lab.InBubble(t, func(t *testing.T, w *lab.World) {
				a, _ := w.Client(lab.Config())
				b, wire := w.Client(lab.Config())
				holder := newSemaphore(w, a, "gpu", 2)
				held := takePermits(w, holder, 2)
				waiter := newSemaphore(w, b, "gpu", 2)
				granted := mustWait(w, waiter, opts...)
				// As if it were told of it by its grant alone.
				var row int
				wire.SetFault(func(r *lab.Request) (*http.Response, error) {
					if r.Op == "GetItem" && row == 0 {
						row++
						resizeTo(w, holder, 1)
					}
					return r.Send()
				})
				w.Release(held["gpu/1"])
				lab.Elapse(10 * time.Second)
				select {
				case lock := <-granted:
					t.Fatalf("%v granted", lock.Key())
				default:
				}
				if got := heldAmong(w, leasehold.Keys("gpu/0", "gpu/1")); !slices.Equal(got, []string{"gpu/0"}) || row != 1 {
					t.Errorf("held %v, row read: %d", got, row)
				}
				w.Release(held["gpu/0"])
				if lock := <-granted; lock.Key().Partition != "gpu/0" {
					t.Errorf("%v granted", lock.Key())
				}
				_ = b.Close(t.Context())
			})
		})
	}
}

func TestHoldersAboveNKeepTheirPermitsAndAreShown(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.Config())
		s := newSemaphore(w, c, "gpu", 3)
		held := takePermits(w, s, 3)
		resizeTo(w, s, 1)
		lab.Elapse(time.Minute)
		for key, lock := range held {
			if err := lock.Err(); err != nil {
				t.Errorf("%s: %v", key, err)
			}
		}
		w.Release(held["gpu/1"])
		// Whoever has never acquired is shown the same.
		for name, s := range map[string]*semaphore.Semaphore{"who resized": s, "a new one": newSemaphore(w, c, "gpu", 1), "who counts differently": newSemaphore(w, c, "gpu", 7)} {
			wire.Sent()
			holders, err := s.Holders(t.Context())
			var keys []string
			for _, r := range holders {
				keys = append(keys, r.Key.Partition)
			}
			if err != nil || !slices.Equal(keys, []string{"gpu/0", "gpu/2"}) || holders[0].Owner == "" {
				t.Errorf("%s: %v, error %v", name, keys, err)
			}
			if got := strings.Join(ops(wire.Sent()), " "); got != "GetItem BatchGetItem" {
				t.Errorf("%s: requests %s", name, got)
			}
		}
		_ = c.Close(t.Context())
	})
}

func TestAWaiterLearnsOfMorePermits(t *testing.T) {
	for name, here := range map[string]bool{"by the same Semaphore": true, "by another process": false} {
		t.Run(name, func(t *testing.T) {
			lab.InBubble(t, func(t *testing.T, w *lab.World) {
				a, _ := w.Client(lab.Config())
				b, _ := w.Client(lab.Config())
				holder, waiter := newSemaphore(w, a, "gpu", 1), newSemaphore(w, b, "gpu", 1)
				takePermit(w, holder)
				granted := mustWait(w, waiter)
				lab.Elapse(30 * time.Second)
				began := time.Now()
				most := 20*500*time.Millisecond + time.Second
				if here {
					resizeTo(w, waiter, 2)
					most = 100 * time.Millisecond
				} else {
					resizeTo(w, holder, 2)
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
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.Config())
		s := newSemaphore(w, c, "gpu", 100)
		w.Release(takePermit(w, s))
		wire.SetFault(lab.Once(func(c lab.Call) bool { return c.Op == "GetItem" }, lab.Slow(2*time.Second)))
		granted := make(chan *leasehold.Lock)
		go func() { granted <- takePermit(w, s) }()
		lab.Elapse(time.Second)
		resizeTo(w, s, 1)
		<-granted
		records := len(w.Scan())
		_, _ = s.TryAcquire(t.Context()) // of one permit, which may be held
		if now := len(w.Scan()); now > records+1 || now == records+1 && w.Item("gpu/0") == nil {
			t.Errorf("another permit was tried than that which there is: %d records, %d before", now, records)
		}
		closed(t, c)
	})
}

func TestAWaiterAsksForNothingTwiceWithoutAResize(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		a, _ := w.Client(lab.Config())
		b, wire := w.Client(lab.Config())
		takePermits(w, newSemaphore(w, a, "gpu", 3), 3)
		waiter := newSemaphore(w, b, "gpu", 3)
		first := mustWait(w, waiter)
		for range 9 {
			mustWait(w, waiter)
		}
		wire.Sent()
		const wait = 5 * time.Minute
		lab.Elapse(wait)
		rows, others := 0, 0
		for _, c := range wire.Sent() {
			switch {
			case touches(c):
				rows++
			case c.Op == "BatchGetItem":
				others++
			default:
				t.Fatalf("a waiter sends %s", c.Op)
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
	row := func(c lab.Call) bool { return c.Op == "UpdateItem" && touches(c) }
	t.Run("stored first", func(t *testing.T) {
		lab.InBubble(t, func(t *testing.T, w *lab.World) {
			a, wire := w.Client(lab.Config())
			b, _ := w.Client(lab.Config())
			wire.SetFault(lab.Once(row, func(r *lab.Request) (*http.Response, error) {
				_, _ = r.Send()
				resizeTo(w, newSemaphore(w, b, "gpu", 9), 5) // another has changed it by the time we ask again
				return nil, lab.ErrReset
			}))
			ours := newSemaphore(w, a, "gpu", 3)
			takePermits(w, ours, 5)
			_ = a.Close(t.Context())
		})
	})
	t.Run("by somebody else", func(t *testing.T) {
		lab.InBubble(t, func(t *testing.T, w *lab.World) {
			a, wire := w.Client(lab.Config())
			b, _ := w.Client(lab.Config())
			wire.SetFault(lab.Once(row, func(r *lab.Request) (*http.Response, error) {
				resizeTo(w, newSemaphore(w, b, "gpu", 9), 5)
				return r.Send()
			}))
			if _, err := newSemaphore(w, a, "gpu", 3).Acquire(t.Context()); !errors.Is(err, semaphore.ErrPermits) {
				t.Errorf("error %v", err)
			}
		})
	})
	t.Run("resized", func(t *testing.T) {
		lab.InBubble(t, func(t *testing.T, w *lab.World) {
			c, wire := w.Client(lab.Config())
			s := newSemaphore(w, c, "gpu", 3)
			w.Release(takePermit(w, s))
			wire.Sent()
			wire.SetFault(lab.Once(row, lab.LoseReply))
			resizeTo(w, s, 7)
			version := lab.Text(w.Item("gpu"), "recordVersionNumber")
			if got := strings.Join(ops(wire.Sent()), " "); got != "GetItem UpdateItem UpdateItem" {
				t.Errorf("requests %s", got)
			}
			resizeTo(w, s, 7) // nothing to do
			if now := lab.Text(w.Item("gpu"), "recordVersionNumber"); now != version || numberOf(w.Item("gpu"), "permits") != "7" {
				t.Errorf("stored again: %v", w.Item("gpu"))
			}
		})
	})
	t.Run("resized, refused after no answer", func(t *testing.T) {
		lab.InBubble(t, func(t *testing.T, w *lab.World) {
			c, wire := w.Client(lab.Config())
			s := newSemaphore(w, c, "gpu", 3)
			resizeTo(w, s, 3)
			var lost bool
			wire.SetFault(func(r *lab.Request) (*http.Response, error) {
				switch {
				case !row(r.Call):
					return r.Send()
				case !lost:
					lost = true
					return lab.LoseReply(r)
				}
				return lab.Refusal(400, "AccessDeniedException"), nil
			})
			if err := s.Resize(t.Context(), 7); !errors.Is(err, leasehold.ErrUnknownOutcome) {
				t.Errorf("error %v", err)
			}
		})
	})
	t.Run("resized without an answer", func(t *testing.T) {
		lab.InBubble(t, func(t *testing.T, w *lab.World) {
			c, wire := w.Client(lab.Config())
			s := newSemaphore(w, c, "gpu", 3)
			w.Release(takePermit(w, s))
			wire.SetFault(func(r *lab.Request) (*http.Response, error) {
				if row(r.Call) {
					return lab.Cut(r)
				}
				return r.Send()
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
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		a, wire := w.Client(lab.Config())
		b, _ := w.Client(lab.Config())
		ours, theirs := newSemaphore(w, a, "gpu", 3), newSemaphore(w, b, "gpu", 3)
		resizeTo(w, ours, 3) // creates the row
		wire.SetFault(lab.Once(func(c lab.Call) bool { return c.Op == "UpdateItem" }, func(r *lab.Request) (*http.Response, error) {
			resizeTo(w, theirs, 50)
			return r.Send()
		}))
		resizeTo(w, ours, 7)
		if item := w.Item("gpu"); numberOf(item, "permits") != "7" || numberOf(item, "most") != "50" {
			t.Errorf("stored %v", item)
		}
	})
}

func TestARowThatWasDeletedIsStoredAgain(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, _ := w.Client(lab.Config())
		s := newSemaphore(w, c, "gpu", 3)
		w.Release(takePermit(w, s))
		resizeTo(w, s, 2)
		w.Delete("gpu")
		takePermit(w, s)
		if n := numberOf(w.Item("gpu"), "permits"); n != "2" {
			t.Errorf("%s permits", n)
		}
		w.Delete("gpu")
		resizeTo(w, s, 4)
		if n := numberOf(w.Item("gpu"), "permits"); n != "4" {
			t.Errorf("%s permits", n)
		}
		_ = c.Close(t.Context())
	})
}

func TestWhatIsNoSemaphoresRowIsAnErrorAndStays(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, _ := w.Client(lab.Config())
		resizeTo(w, newSemaphore(w, c, "gpu", 3), 3)
		good := w.Item("gpu")
		w.Release(w.Acquire(c, "lock"))
		rows := map[string]map[string]types.AttributeValue{"a lock": w.Item("lock"), "nothing but a key": {}}
		for name, change := range map[string]struct {
			attribute string
			value     types.AttributeValue
		}{
			"another kind":       {"kind", lab.Str("rw")},
			"no number":          {"permits", nil},
			"none":               {"permits", lab.Num("0")},
			"too many":           {"permits", lab.Num("101")},
			"no number at all":   {"permits", lab.Str("3")},
			"never so many":      {"most", lab.Num("2")},
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
			row["key"] = lab.Str("gpu")
			w.Put(row)
			s := newSemaphore(w, c, "gpu", 3)
			_, acquire := s.Acquire(t.Context())
			_, holders := s.Holders(t.Context())
			for what, err := range map[string]error{"acquire": acquire, "holders": holders, "resize": s.Resize(t.Context(), 2)} {
				var bad *leasehold.RecordError
				if !errors.As(err, &bad) || bad.Key.Partition != "gpu" || !strings.Contains(err.Error(), "choose another key") {
					t.Errorf("%s, %s: %v", name, what, err)
				}
			}
			if got := w.Item("gpu"); len(got) != len(row) {
				t.Errorf("%s: overwritten with %v", name, got)
			}
		}
	})
}

func TestTheRowOfASemaphoreIsNeverGrantedNorListed(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, _ := w.Client(lab.Config())
		w.Release(takePermit(w, newSemaphore(w, c, "gpu", 3)))
		for range 2 {
			if _, err := c.TryAcquire(t.Context(), "gpu"); !errors.Is(err, leasehold.ErrBadRecord) {
				t.Errorf("granted as a lock: %v", err)
			}
			lab.Elapse(200 * 24 * time.Hour) // nobody renews it
		}
		n := 0
		for r, err := range c.List(t.Context()) {
			if n++; err != nil || !strings.HasPrefix(r.Key.Partition, "gpu/") {
				t.Errorf("listed %v: %v", r.Key, err)
			}
		}
		w.Update("gpu", map[string]types.AttributeValue{"permits": nil})
		var bad *leasehold.RecordError
		for _, err := range c.List(t.Context()) {
			if err != nil && !errors.As(err, &bad) {
				t.Error(err)
			}
		}
		if n != 1 || bad == nil || bad.Key.Partition != "gpu" {
			t.Errorf("%d listed; damaged: %v", n, bad)
		}
		item := w.Item("gpu")
		for _, name := range []string{"ownerName", "leaseDuration", "recordVersionNumber"} {
			if lab.Text(item, name) == "" {
				t.Errorf("%s is missing, which a listing of the Java client needs", name)
			}
		}
		if ms, err := strconv.ParseInt(lab.Text(item, "leaseDuration"), 10, 64); err != nil || time.Duration(ms)*time.Millisecond < 50*365*24*time.Hour {
			t.Errorf("a client that does not know kinds takes it over after %d ms: %v", ms, err)
		}
		_ = c.Close(t.Context())
	})
}

func TestWhatASemaphoreCannotDo(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		for _, l := range []layout.Layout{layout.AWSLabs{}, layout.Dynamolock{}, layout.PythonDynamoDBLock{}, layout.DyndbMutex{}, layout.DynamoDLM{NoSlots: true}} {
			c, _ := w.Client(locksOf("locks", l))
			var unsupported *leasehold.UnsupportedError
			if _, err := semaphore.New(c, "gpu", 3); !errors.As(err, &unsupported) || *unsupported != (leasehold.UnsupportedError{Table: "locks", Layout: l.Name(), Feature: "semaphores"}) {
				t.Errorf("%s: %v", l.Name(), err)
			}
		}
		if _, err := semaphore.New(nil, "gpu", 3); err == nil {
			t.Error("a nil client was taken")
		}
		c, wire := w.Client(lab.Config())
		for _, n := range []int{-1, 0, 101} {
			if _, err := semaphore.New(c, "gpu", n); err == nil || !strings.Contains(err.Error(), "from 1 to 100") {
				t.Errorf("%d permits: %v", n, err)
			}
			if err := newSemaphore(w, c, "gpu", 3).Resize(t.Context(), n); err == nil || !strings.Contains(err.Error(), "from 1 to 100") {
				t.Errorf("resized to %d: %v", n, err)
			}
		}
		for _, key := range []string{"", "leasehold/session/abc", strings.Repeat("k", 2046)} {
			if _, err := semaphore.New(c, key, 1); err == nil {
				t.Errorf("a semaphore under a key of %d bytes", len(key))
			}
		}
		for _, o := range []leasehold.AcquireOption{leasehold.IfExists(), leasehold.WithSortKey("x")} {
			if _, err := newSemaphore(w, c, "gpu", 3).Acquire(t.Context(), o); !errors.Is(err, errors.ErrUnsupported) {
				t.Errorf("%T: %v", o, err)
			}
		}
		ended, cancel := context.WithCancelCause(t.Context())
		cancel(lab.ErrReset)
		if _, err := newSemaphore(w, c, "gpu", 3).Acquire(ended); !errors.Is(err, lab.ErrReset) {
			t.Errorf("under an ended context: %v", err)
		}
		if sent := wire.Sent(); len(sent) != 0 {
			t.Errorf("%d requests for what cannot be had", len(sent))
		}
	})
}

func TestATryForAPermitSaysThatAllAreHeld(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		a, _ := w.Client(lab.Config())
		b, wire := w.Client(lab.Config())
		takePermits(w, newSemaphore(w, a, "gpu", 3), 3)
		s := newSemaphore(w, b, "gpu", 3)
		_, err := s.TryAcquire(t.Context())
		var held *leasehold.HeldError
		if !errors.As(err, &held) || held.Holder.Grant == "" || !strings.Contains(err.Error(), "all 3 permits of gpu are held") {
			t.Errorf("error %v", err)
		}
		// Not answered, it gives up.
		wire.SetFault(func(*lab.Request) (*http.Response, error) {
			return lab.Refusal(400, "ThrottlingException"), nil
		})
		for name, s := range map[string]*semaphore.Semaphore{"agreed": s, "new": newSemaphore(w, b, "gpu", 3)} {
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
		fault lab.Fault
		is    error
	}{
		"the wait ends":  {nil, lab.Cut, context.DeadlineExceeded},
		"a try gives up": {[]leasehold.AcquireOption{leasehold.NoWait()}, func(*lab.Request) (*http.Response, error) { return nil, lab.ErrReset }, lab.ErrReset},
		"it is refused":  {nil, func(*lab.Request) (*http.Response, error) { return lab.Refusal(400, "AccessDeniedException"), nil }, nil},
		"by hand":        {[]leasehold.AcquireOption{leasehold.WithoutRenewal()}, lab.Cut, context.DeadlineExceeded},
	} {
		t.Run(name, func(t *testing.T) {
			lab.InBubble(t, func(t *testing.T, w *lab.World) {
				client, wire := w.Client(lab.Config())
				s := newSemaphore(w, client, "gpu", 1)
				w.Release(takePermit(w, s))
				wire.SetFault(func(r *lab.Request) (*http.Response, error) {
					if r.Op == "GetItem" {
						return c.fault(r)
					}
					return r.Send()
				})
				ctx, cancel := context.WithTimeout(t.Context(), 12*time.Second)
				defer cancel()
				_, err := s.Acquire(ctx, c.opts...)
				if err == nil || c.is != nil && !errors.Is(err, c.is) {
					t.Errorf("error %v", err)
				}
				if held := heldAmong(w, leasehold.Keys("gpu/0")); len(held) > 0 || len(client.Held()) > 0 {
					t.Errorf("left held: %v", held)
				}
			})
		})
	}
}

func TestAPermitLostBeforeItIsConfirmedIsSoughtAgain(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.Config())
		s := newSemaphore(w, c, "gpu", 1)
		w.Release(takePermit(w, s))
		wire.SetFault(lab.Once(func(c lab.Call) bool { return c.Op == "GetItem" }, func(req *lab.Request) (*http.Response, error) {
			for r, err := range c.List(req.Context()) {
				if err != nil || c.Break(req.Context(), r) != nil {
					t.Error("not broken")
				}
			}
			_ = c.Held()[0].Renew(req.Context()) // which tells it
			return lab.Cut(req)
		}))
		lock := takePermit(w, s)
		if err := lock.Err(); err != nil {
			t.Error(err)
		}
		w.Release(lock)
	})
}

func TestWithoutRenewalAPermitLeavesNothingInTheBackground(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		a, _ := w.Client(lab.Config())
		b, wire := w.Client(lab.Config())
		s := newSemaphore(w, b, "gpu", 1)
		lock := takePermit(w, s, leasehold.WithoutRenewal())
		w.Release(lock)
		takePermit(w, newSemaphore(w, a, "gpu", 1))
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		if _, err := s.Acquire(ctx, leasehold.WithoutRenewal()); !errors.Is(err, leasehold.ErrHeld) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v", err)
		}
		wire.Sent()
		lab.Elapse(time.Minute)
		if n := len(wire.Sent()); n != 0 {
			t.Errorf("%d requests after it returned", n)
		}
		_ = a.Close(t.Context())
	})
}

func TestAContextThatHoldsAPermitGetsAnotherOrSharesIt(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.Config())
		s := newSemaphore(w, c, "gpu", 2)
		held := takePermits(w, s, 2)
		outer := held["gpu/1"]
		w.Release(held["gpu/0"])
		second, err := s.Acquire(outer.Context())
		if err != nil || second.Key().Partition != "gpu/0" {
			t.Fatalf("%v, error %v", second, err)
		}
		if _, err := s.Acquire(second.Context()); !errors.Is(err, leasehold.ErrDeadlock) {
			t.Errorf("with both held by the context: %v", err)
		}
		w.Release(second)
		resizeTo(w, s, 1) // above n it is shared as well
		wire.Sent()
		shared, err := s.Acquire(outer.Context(), leasehold.Reentrant())
		if err != nil || shared.Token() != outer.Token() || len(wire.Sent()) != 0 {
			t.Fatalf("%v, error %v", shared, err)
		}
		w.Release(shared)
		if err := outer.Err(); err != nil {
			t.Error(err)
		}
		w.Release(outer)
		w.Release(takePermit(w, s, leasehold.Reentrant()))
	})
}

func TestPermitsInATableWithASortKey(t *testing.T) {
	for value, want := range map[string]string{"": "-", "eu": "eu"} {
		t.Run(want, func(t *testing.T) {
			lab.InBubble(t, func(t *testing.T, w *lab.World) {
				l := layout.Native{SortKey: "shard", SortValue: value}
				if err := table.Create(t.Context(), w.DB, table.Spec{Name: "sorted", Layout: l}); err != nil {
					t.Fatal(err)
				}
				c, _ := w.Client(locksOf("sorted", l))
				lock := takePermit(w, newSemaphore(w, c, "gpu", 1))
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
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		l := layout.DynamoDLM{}
		if err := table.Create(t.Context(), w.DB, table.Spec{Name: "dlm", Layout: l}); err != nil {
			t.Fatal(err)
		}
		cfg := locksOf("dlm", l)
		a, _ := w.Client(cfg)
		b, wire := w.Client(cfg)
		s := newSemaphore(w, b, "gpu", 3)
		other := w.Acquire(a, "gpu", leasehold.WithSortKey("1")) // slot 1 of a process that does not know semaphores
		held := []*leasehold.Lock{takePermit(w, s), takePermit(w, s)}
		slots := []string{held[0].Key().Sort, held[1].Key().Sort}
		slices.Sort(slots)
		if !slices.Equal(slots, []string{"0", "2"}) || held[0].Key().Partition != "gpu" {
			t.Errorf("slots %v of %s", slots, held[0].Key().Partition)
		}
		for _, c := range wire.Sent() {
			if c.Op != "UpdateItem" {
				t.Errorf("%s: records of dynamo-dlm do not say how many slots there are", c.Op)
			}
		}
		if _, err := s.TryAcquire(t.Context()); !errors.Is(err, leasehold.ErrHeld) {
			t.Errorf("a fourth: %v", err)
		}
		var unsupported *leasehold.UnsupportedError
		if err := s.Resize(t.Context(), 4); !errors.As(err, &unsupported) || *unsupported != (leasehold.UnsupportedError{Table: "dlm", Layout: "dynamo-dlm", Feature: "Resize"}) {
			t.Errorf("resize: %v", err)
		}
		w.Release(other)
		dead, _ := w.Client(cfg)
		if _, err := dead.Acquire(t.Context(), "gpu", leasehold.WithSortKey("1"), leasehold.WithoutRenewal()); err != nil {
			t.Fatal(err)
		}
		if holders, err := s.Holders(t.Context()); err != nil || len(holders) != 3 {
			t.Errorf("%d holders: %v", len(holders), err)
		}
		lab.Elapse(30 * time.Second) // dynamo-dlm leaves the records of its dead in place
		if holders, err := s.Holders(t.Context()); err != nil || len(holders) != 2 {
			t.Errorf("%d holders, one of whom is dead: %v", len(holders), err)
		}
		closed(t, a, b)
		_ = dead.Close(t.Context())
	})
}

func TestHoldersLeavesOutWhatASharedLeaseHasFreed(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		a, _ := w.Client(lab.SharedConfig())
		b, _ := w.Client(lab.Config())
		takePermits(w, newSemaphore(w, a, "gpu", 3), 2)
		s := newSemaphore(w, b, "gpu", 3)
		takePermit(w, s)
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
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, _ := w.Client(lab.Config())
		s := newSemaphore(w, c, "gpu", 100)
		for i := range 100 {
			if i%2 == 0 {
				w.Put(map[string]types.AttributeValue{"key": lab.Str(fmt.Sprintf("gpu/%d", i))})
			}
		}
		lock := takePermit(w, s)
		holders, err := s.Holders(t.Context())
		var bad *leasehold.RecordError
		if len(holders) != 1 || holders[0].Grant != lock.Record().Grant || !errors.As(err, &bad) {
			t.Errorf("%d holders, error %v", len(holders), err)
		}
		closed(t, c)
	})
}

func TestAPermitOfADeadHolderIsTakenOver(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		dead, wire := w.Client(lab.Config())
		alive, _ := w.Client(lab.Config())
		takePermit(w, newSemaphore(w, dead, "gpu", 2))
		takePermit(w, newSemaphore(w, alive, "gpu", 2))
		wire.SetFault(lab.Cut)
		c, _ := w.Client(lab.Config())
		began := time.Now()
		lock := takePermit(w, newSemaphore(w, c, "gpu", 2))
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
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		a, _ := w.Client(lab.Config())
		b, wire := w.Client(lab.Config())
		takePermit(w, newSemaphore(w, a, "gpu", 1))
		for name, stuck := range map[string]func(lab.Call) bool{
			"agreeing":   func(c lab.Call) bool { return c.Op == "GetItem" && touches(c) },
			"waiting":    func(lab.Call) bool { return false },
			"confirming": func(c lab.Call) bool { return c.Op == "GetItem" },
		} {
			c, wire := w.Client(lab.Config())
			key := "gpu"
			if name == "confirming" {
				key = "free"
				resizeTo(w, newSemaphore(w, a, key, 1), 1)
			}
			s := newSemaphore(w, c, key, 1)
			if name == "confirming" {
				w.Release(takePermit(w, s))
			}
			wire.SetFault(func(r *lab.Request) (*http.Response, error) {
				if stuck(r.Call) {
					return lab.Cut(r)
				}
				return r.Send()
			})
			ended := make(chan error)
			go func() {
				_, err := s.Acquire(t.Context())
				ended <- err
			}()
			lab.Elapse(time.Second)
			closed(t, c)
			if err := <-ended; !errors.Is(err, leasehold.ErrClosed) {
				t.Errorf("%s: %v", name, err)
			}
		}
		if held := heldAmong(w, leasehold.Keys("free/0")); len(held) > 0 {
			t.Errorf("left held: %v", held)
		}
		closed(t, b)
		s := newSemaphore(w, b, "gpu", 1)
		_, acquire := s.Acquire(t.Context())
		_, holders := s.Holders(t.Context())
		for name, err := range map[string]error{"acquire": acquire, "holders": holders, "resize": s.Resize(t.Context(), 2)} {
			if !errors.Is(err, leasehold.ErrClosed) {
				t.Errorf("%s: %v", name, err)
			}
		}
		if n := len(wire.Sent()); n != 0 {
			t.Errorf("%d requests after Close", n)
		}
		closed(t, a)
	})
}
