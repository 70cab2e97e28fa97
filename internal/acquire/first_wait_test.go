package acquire_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/attribute"
	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/layout"
)

// grants returns a predicate that is true for the requests that grant the key.
func grants(key string) func(lab.Call) bool {
	return func(c lab.Call) bool { return c.Grants() && slices.Contains(c.Keys(), key) }
}

// isGet reports whether a request reads a single item. A call for several keys usually reads their
// records in one batch. But it reads the row of a session in a separate request.
func isGet(c lab.Call) bool { return c.Op == "GetItem" }

// about returns a predicate that is true for the requests that name the key.
func about(key string) func(lab.Call) bool {
	return func(c lab.Call) bool { return slices.Contains(c.Keys(), key) }
}

// readsSession reports whether a request reads the row of a session, in a test whose only lock is a.
func readsSession(c lab.Call) bool { return isGet(c) && !about("a")(c) }

// acquireAny calls AcquireAny on a new goroutine. The call must be granted a key. The
// returned channel receives the lock.
func acquireAny(t *testing.T, c *leasehold.Client, keys ...string) <-chan *leasehold.Lock {
	granted := make(chan *leasehold.Lock, 1)
	go func() {
		lock, err := c.AcquireAny(t.Context(), leasehold.Keys(keys...))
		lab.WantErr(t, "AcquireAny", err, nil)
		granted <- lock
	}()
	lab.Elapse(time.Millisecond)
	return granted
}

func TestTimedOutAcquireAnyLeavesNoKeyHeld(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		a, _ := w.Client(lab.Config())
		b, wire := w.Client(lab.Config())
		keys := leasehold.Keys("a", "b")
		others := w.AcquireAll(a, keys)
		err := lab.ErrorOf(b.AcquireAny(w.Within(5*time.Second), keys))
		lab.WantErr(t, "AcquireAny", err, leasehold.ErrHeld, context.DeadlineExceeded)
		w.Release(others)
		synctest.Wait() // waits until the call has left the queues of both records
		w.WantSilence(wire, time.Minute)
		w.Release(w.Acquire(b, "a", leasehold.NoWait()))
		w.Release(w.Acquire(b, "b", leasehold.NoWait()))
	})
}

func TestTimeoutErrorNamesHeldKeyIfOwnClientIsHolder(t *testing.T) {
	lab.Each(t, map[string]func(ctx context.Context, c *leasehold.Client) error{
		"AcquireAny": func(ctx context.Context, c *leasehold.Client) error {
			return lab.ErrorOf(c.AcquireAny(ctx, leasehold.Keys("b", "a")))
		},
		"AcquireAll": func(ctx context.Context, c *leasehold.Client) error {
			return lab.ErrorOf(c.AcquireAll(ctx, leasehold.Keys("b", "free")))
		},
	}, func(t *testing.T, w *lab.World, acquire func(ctx context.Context, c *leasehold.Client) error) {
		c, wire := w.Client(lab.Config())
		held := w.AcquireAll(c, leasehold.Keys("a", "b"))
		wire.Sent()
		err := acquire(w.Within(time.Second), c)
		var is *leasehold.HeldError
		if !errors.As(err, &is) || is.Key.Partition != "b" || is.Holder.Grant != held.Locks()[1].Record().Grant || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v", err)
		}
		lab.Want(t, "requests", len(wire.Sent()), 0)
		w.Release(held)
	})
}

func TestAcquireAnyLetsThreeGoroutinesHoldOneKeyEach(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.Config())
		keys := leasehold.Keys("a", "b", "c")
		var mu sync.Mutex
		inside, most := 0, 0
		var wg sync.WaitGroup
		for range 9 {
			wg.Go(func() {
				for range 3 {
					lock, err := c.AcquireAny(t.Context(), keys)
					if err != nil {
						t.Error(err)
						return
					}
					mu.Lock()
					inside++
					most = max(most, inside)
					mu.Unlock()
					time.Sleep(time.Second)
					mu.Lock()
					inside--
					mu.Unlock()
					w.Release(lock)
				}
			})
		}
		began := time.Now()
		wg.Wait()
		lab.WantTook(t, "27 seconds of work took", began, 0, 10*time.Second)
		lab.Want(t, "most keys held at once", most, 3)
		lab.Want(t, "requests (a waiter behind goroutines of its own client sends none)", len(wire.Sent()), 2*27)
	})
}

func TestAcquireAnyWaitsEvenIfSessionReadIsDenied(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		holder, _ := w.Client(lab.SharedConfig())
		w.Acquire(holder, "a")
		c, wire := w.Client(lab.Config())
		wire.SetFault(lab.On(readsSession, lab.Refused("AccessDeniedException")))
		var op *leasehold.OpError
		if _, err := c.AcquireAny(w.Within(time.Minute), leasehold.Keys("a")); !errors.As(err, &op) || !errors.Is(err, leasehold.ErrHeld) ||
			!errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "access denied") {
			t.Errorf("error %v", err)
		}
		_ = holder.Close(t.Context())
	})
}

func TestAcquireAnyWithoutRenewalSendsNothingAfterReturn(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.Config())
		wire.SetFault(lab.On(grants("a"), lab.Drop))
		lock := lab.Must(c.AcquireAny(t.Context(), leasehold.Keys("a", "b"), leasehold.WithoutRenewal(), leasehold.NoWait()))(t)
		w.WantSilence(wire, 10*time.Second)
		w.Release(lock)
	})
}

// oftenHandedOver returns a client and its lock of "a", which the client's goroutines have often
// handed to each other. After the release of this lock, the next goroutine pauses to let other
// processes acquire "a" first.
func oftenHandedOver(w *lab.World) (*leasehold.Client, *lab.Wire, *leasehold.Lock) {
	w.T.Helper()
	cfg := lab.ConfigOf("locks", layout.AWSLabs{}) // this layout has no queue in its records
	cfg.PollMax = time.Second
	c, wire := w.Client(cfg)
	a := w.Acquire(c, "a")
	lab.Elapse(30 * time.Second) // after 30 s, other processes that wait pause for PollMax between their polls
	for range 16 {
		next := w.Queue(c, "a")
		w.Release(a)
		a = <-next
	}
	return c, wire, a
}

func TestTryAcquireFailsAtOnceDuringPauseForOtherProcesses(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, _, a := oftenHandedOver(w)
		next := w.Queue(c, "a")
		w.Release(a)
		began := time.Now()
		lab.WantErr(t, "TryAcquire", lab.ErrorOf(c.TryAcquire(t.Context(), "a")), leasehold.ErrHeld)
		lab.Want(t, "returned after", time.Since(began), 0)
		w.Release(<-next)
	})
}

func TestPauseForOtherProcessesIsNotCutShortIfTurnIsPassedOn(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, _, a := oftenHandedOver(w)
		b := w.Acquire(c, "b")
		first, second := acquireAny(t, c, "a", "b"), acquireAny(t, c, "a", "b")
		w.Release(a)
		lab.Elapse(500 * time.Millisecond)
		w.Release(b)
		began := time.Now()
		// The first call had the turn for "a", but is granted "b". So it passes the turn for "a" to
		// the second call.
		b = <-first
		lab.Want(t, "key", b.Key().Partition, "b")
		a = <-second
		// After the release of "a", other processes have up to two seconds to acquire it first.
		lab.WantTook(t, "a was granted after", began, time.Second, 2*time.Second)
		w.Release(a)
		w.Release(b)
	})
}

func TestPauseForOtherProcessesIsNotCutShortByCancelledCall(t *testing.T) {
	lab.Each(t, map[string]func(context.Context, *leasehold.Client) error{
		"Acquire": func(ctx context.Context, c *leasehold.Client) error { return lab.ErrorOf(c.Acquire(ctx, "a")) },
		"AcquireAll": func(ctx context.Context, c *leasehold.Client) error {
			return lab.ErrorOf(c.AcquireAll(ctx, leasehold.Keys("a", "b")))
		},
	}, func(t *testing.T, w *lab.World, acquire func(context.Context, *leasehold.Client) error) {
		c, _, a := oftenHandedOver(w)
		cancelled := lab.Go(func() error { return acquire(w.Within(500*time.Millisecond), c) })
		synctest.Wait()
		last := acquireAny(t, c, "a")
		released := time.Now()
		w.Release(a)
		lab.WantErr(t, "call", <-cancelled, context.DeadlineExceeded)
		a = <-last
		lab.WantTook(t, "time from release to grant", released, time.Second, 2*time.Second)
		w.Release(a)
	})
}

func TestAcquireAnyReleasesGrantIfReplyArrivesAfterTimeout(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		other, _ := w.Client(lab.Config())
		held := w.Acquire(other, "a")
		c, wire := w.Client(lab.Config())
		var lost atomic.Bool
		wire.SetFault(func(r *lab.Request) (*http.Response, error) {
			a := strings.Contains(string(r.Body), `"a"`)
			switch {
			case r.Grants() && a && !lost.Swap(true):
				return nil, lab.ErrReset
			case r.Grants() && !a:
				return lab.Slow(time.Second)(r.WithContext(context.WithoutCancel(r.Context())))
			case r.Releases() && a:
				return lab.Cut(r)
			}
			return r.Send()
		})
		lab.WantErr(t, "AcquireAny", lab.ErrorOf(c.AcquireAny(w.Within(500*time.Millisecond), leasehold.Keys("a", "b"), leasehold.WithoutRenewal())), context.DeadlineExceeded)
		if held := w.HeldAmong(leasehold.Keys("b")); len(held) > 0 || len(c.Held()) > 0 {
			t.Errorf("left held: %v", held)
		}
		// The call has also left the local queue of the other key.
		wire.SetFault(nil)
		w.Release(held)
		lab.WantErr(t, "acquire the other key", lab.ErrorOf(c.Acquire(w.Within(time.Minute), "a")), nil)
		_, _ = c.Close(t.Context()), other.Close(t.Context())
	})
}

func TestAcquireAnyAcquiresSecondKeyIfRequestForFirstIsLost(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		holder, _ := w.Client(lab.Config())
		other := w.Acquire(holder, "b")
		c, wire := w.Client(lab.Config())
		wire.SetFault(lab.Once(lab.Call.Grants, func(*lab.Request) (*http.Response, error) {
			w.Acquire(holder, "a") // another client acquires a before the first client requests a again
			return nil, lab.ErrReset
		}))
		granted := acquireAny(t, c, "a", "b")
		lab.Elapse(time.Minute)
		w.Release(other)
		lab.Elapse(10 * time.Second)
		select {
		case lock := <-granted:
			w.Release(lock)
		default:
			t.Error("b is free, but was not granted")
		}
		_ = c.Close(t.Context())
		_ = holder.Close(t.Context())
	})
}

func TestAcquireAnyErrorNamesKeyWhoseGrantHadNoReply(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		holder, _ := w.Client(lab.Config())
		w.Acquire(holder, "b")
		c, wire := w.Client(lab.Config())
		wire.SetFault(lab.On(about("a"), lab.Cut))
		_, err := c.AcquireAny(t.Context(), leasehold.Keys("a", "b"), leasehold.NoWait())
		if op := (*leasehold.OpError)(nil); !errors.As(err, &op) || op.Key.Partition != "a" {
			t.Errorf("error %v", err)
		}
		_ = c.Close(t.Context())
		_ = holder.Close(t.Context())
	})
}

func TestErrorOfAcquireAnyNamesFreeKeyRatherThanDamagedKey(t *testing.T) {
	lab.Each(t, map[string][]leasehold.Key{
		"free key first":    leasehold.Keys("free", "damaged"),
		"damaged key first": leasehold.Keys("damaged", "free"),
	}, func(t *testing.T, w *lab.World, keys []leasehold.Key) {
		w.Put(lab.Key("damaged"))
		c, wire := w.Client(lab.Config())
		// Each grant of the free key is rejected without being applied, so the key stays free.
		wire.SetFault(lab.On(grants("free"), lab.Refused("ConditionalCheckFailedException")))
		_, err := c.AcquireAny(t.Context(), keys, leasehold.NoWait())
		if op := (*leasehold.OpError)(nil); !errors.As(err, &op) || op.Key.Partition != "free" || errors.Is(err, leasehold.ErrHeld) {
			t.Errorf("error %v", err)
		}
		_ = c.Close(t.Context())
	})
}

func TestErrorOfAcquireAnyContainsFailedRequestAndDamagedKey(t *testing.T) {
	lab.Each(t, map[string][]leasehold.AcquireOption{"without NoWait": nil, "with NoWait": {leasehold.NoWait()}}, func(t *testing.T, w *lab.World, opts []leasehold.AcquireOption) {
		w.Put(lab.Key("damaged"))
		c, wire := w.Client(lab.Config())
		wire.SetFault(lab.On(about("b"), lab.Throttled))
		_, err := c.AcquireAny(w.Within(15*time.Second), leasehold.Keys("damaged", "b"), opts...)
		lab.WantAs[*leasehold.RecordError](t, "AcquireAny", err)
		if op := (*leasehold.OpError)(nil); !errors.As(err, &op) || op.Key.Partition != "b" || !strings.Contains(err.Error(), "throttled") {
			t.Errorf("error %v", err)
		}
		_ = c.Close(t.Context())
	})
}

func TestErrorOfAcquireAnyContainsLocallyHeldKey(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.Config())
		lock := w.Acquire(c, "a")
		wire.SetFault(lab.On(about("b"), lab.Cut))
		_, err := c.AcquireAny(t.Context(), leasehold.Keys("a", "b"), leasehold.NoWait())
		if held := (*leasehold.HeldError)(nil); !errors.As(err, &held) || held.Key != lock.Key() || held.Holder.Grant != lock.Record().Grant {
			t.Errorf("error %v", err)
		}
		wire.SetFault(nil)
		_ = c.Close(t.Context())
	})
}

func TestAcquireAnySkipsThrottledKey(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.Config())
		wire.SetFault(lab.On(grants("a"), lab.Throttled))
		began := time.Now()
		lock, err := c.AcquireAny(t.Context(), leasehold.Keys("a", "b"))
		if err != nil || lock.Key().Partition != "b" || time.Since(began) > time.Second {
			t.Fatalf("%v after %v", err, time.Since(began))
		}
		w.Release(lock)
	})
}

// A batch read returns the record of a, if there is one, and lists the throttled key b as unprocessed.
func TestAcquireAnyAcquiresFreedKeyIfReadsOfOtherKeyAreThrottled(t *testing.T) {
	lab.Each(t, map[string]leasehold.DeleteOnRelease{"kept": false, "deleted": true}, func(t *testing.T, w *lab.World, how leasehold.DeleteOnRelease) {
		other, _ := w.Client(lab.Config())
		a, b := w.Acquire(other, "a"), w.Acquire(other, "b")
		c, wire := w.Client(lab.Config())
		granted := acquireAny(t, c, "a", "b")
		wire.SetFault(lab.On(func(c lab.Call) bool { return c.Reads() && about("b")(c) }, func(r *lab.Request) (*http.Response, error) {
			if len(r.Keys()) == 1 {
				return lab.Throttled(r)
			}
			res, body := lab.Refusal(http.StatusOK, ""), `{"Responses":{"locks":[]},"UnprocessedKeys":{"locks":{"Keys":[{"key":{"S":"b"}}]}}}`
			if record := w.Item("a"); record != nil {
				body = strings.Replace(body, "[]", string(lab.Must(json.Marshal([]any{lab.Must(attribute.JSON(record))(t)}))(t)), 1)
			}
			res.Body, res.ContentLength = io.NopCloser(strings.NewReader(body)), int64(len(body))
			return res, nil
		}))
		wire.Sent()
		lab.Elapse(8 * time.Second)
		lab.WantRange(t, "requests for b in eight seconds", lab.Count(wire.Sent(), about("b")), 5, 40)
		w.Release(a, how)
		released := time.Now()
		a = <-granted
		lab.WantTook(t, "time from release to grant", released, 0, time.Second)
		lab.Want(t, "key", a.Key().Partition, "a")
		w.Release(a)
		w.Release(b)
	})
}

func TestAcquireAnyRetriesFailedRequestOncePerSecondOnAverage(t *testing.T) {
	lab.Each(t, map[string]func(lab.Call) bool{
		"a session cannot be read":        isGet,
		"a session cannot be marked dead": func(c lab.Call) bool { return c.Op == "UpdateItem" && strings.Contains(string(c.Body), "dead") },
	}, func(t *testing.T, w *lab.World, fails func(lab.Call) bool) {
		holder, _ := w.Client(lab.Config())
		sharer, dies := w.Client(lab.SharedConfig())
		other := w.Acquire(holder, "a")
		w.Acquire(sharer, "b")
		dies.SetFault(lab.Cut)
		c, wire := w.Client(lab.Config())
		var requests atomic.Int64
		wire.SetFault(lab.On(fails, func(r *lab.Request) (*http.Response, error) {
			requests.Add(1)
			return lab.Drop(r)
		}))
		lab.WantFailed(t, "AcquireAny", lab.ErrorOf(c.AcquireAny(w.Within(5*time.Minute), leasehold.Keys("a", "b"))))
		// The pauses after failed requests are random. Their upper limit grows to two seconds, and
		// from then on a pause lasts one second on average.
		lab.WantRange(t, "requests in five minutes", requests.Load(), 150, 400)
		w.Release(other)
		_ = c.Close(t.Context())
		_ = sharer.Close(t.Context())
	})
}

// A takeover of "a" gets no answer. Another client then takes "a" over, and keeps it. So the
// unanswered takeover can no longer be applied, and must not keep AcquireAny from the other key.
func TestAcquireAnyAcquiresOtherKeyAfterUnansweredTakeover(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		w.LeavesHeld(lab.Config(), 0, "a")
		holder, _ := w.Client(lab.Config())
		b := w.Acquire(holder, "b")
		c, wire := w.Client(lab.Config())
		granted := acquireAny(t, c, "a", "b")
		lab.Elapse(time.Second)
		wire.SetFault(lab.On(lab.Call.Grants, lab.Cut))
		other, _ := w.Client(lab.Config())
		a := w.Acquire(other, "a")
		wire.SetFault(nil)
		lab.Elapse(10 * time.Second)
		w.Release(b)
		lab.Elapse(5 * time.Minute)
		w.Release(a)
		lock := <-granted
		lab.Want(t, "granted", lock.Key().Partition, "b")
		w.Release(lock)
	})
}
