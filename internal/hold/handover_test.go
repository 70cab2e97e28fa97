package hold_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
)

func TestKeyPassesFromCancelledWaiterToNextWaiter(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire, lock := w.Holding(lab.Config())
		leave, left := mayLeave(w, c)
		granted := w.Queue(c, "job")
		wire.SetFault(lab.Once(lab.Call.Grants, func(r *lab.Request) (*http.Response, error) {
			leave() // the goroutine is cancelled while the hand-over to it is in flight
			return lab.Slow(100 * time.Millisecond)(r)
		}))
		w.Release(lock)
		lab.WantErr(t, "cancelled waiter", <-left, context.Canceled)
		last := <-granted
		lab.Want(t, "locks held", len(c.Held()), 1)
		w.Release(last)
	})
}

func TestKeyWithMaximumTokenIsReleasedIfItsWaiterIsCancelled(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		setup, _ := w.Client(lab.Config())
		w.Release(w.Acquire(setup, "job"))
		w.Update("job", map[string]types.AttributeValue{"fencingToken": lab.Num("9007199254740988")})
		c, wire, lock := w.Holding(lab.Config())
		leave, left := mayLeave(w, c)
		next := lab.Go(func() error { return lab.ErrorOf(c.Acquire(t.Context(), "job")) })
		wire.SetFault(lab.Once(lab.Call.Grants, func(r *lab.Request) (*http.Response, error) {
			leave() // the goroutine is cancelled while the hand-over to it, with the last token, is in flight
			return lab.Slow(100 * time.Millisecond)(r)
		}))
		w.Release(lock)
		lab.WantErr(t, "cancelled waiter", <-left, context.Canceled)
		lab.WantAs[*leasehold.RecordError](t, "next waiter", <-next)
		w.WantReleased("job")
	})
}

// holdUp is a log handler that blocks each warning until its channel is closed.
type holdUp struct {
	slog.Handler
	until <-chan struct{}
}

func (h holdUp) Enabled(_ context.Context, l slog.Level) bool { return l >= slog.LevelWarn }

func (h holdUp) Handle(context.Context, slog.Record) error {
	<-h.until
	return nil
}

// noPool is an HTTP client with MaxIdleConnsPerHost 0. Therefore a lock client that uses it logs a
// warning when it holds ten locks.
type noPool struct{ *lab.Wire }

func (noPool) GetTransport() *http.Transport { return &http.Transport{} }

// crowded returns a client that holds "job" and eight other locks. After a call of "another", the
// next hand-over of "job" is applied, and then logs a warning, which blocks until the channel is
// closed. Only after that does the client check whether the goroutine still waits.
func crowded(w *lab.World, until <-chan struct{}) (c *leasehold.Client, wire *lab.Wire, job *leasehold.Lock, another func()) {
	wire = w.Wire()
	cfg := lab.Config()
	cfg.Logger = slog.New(holdUp{slog.DiscardHandler, until})
	c = w.ClientOf(w.Connect(nil, func(o *dynamodb.Options) { o.HTTPClient = noPool{wire} }), cfg)
	job = w.Acquire(c, "job")
	held := 0
	another = func() {
		w.Acquire(c, fmt.Sprint("other ", held), leasehold.WithoutRenewal(), leasehold.WithLease(time.Hour))
		held++
	}
	for range 8 {
		another()
	}
	return c, wire, job, another
}

func TestGrantToCancelledWaiterIsReleasedEvenIfRenewed(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		renewed := make(chan struct{})
		c, wire, lock, another := crowded(w, renewed)
		leave, left := mayLeave(w, c, leasehold.WithLease(3*time.Second))
		wire.SetFault(func(r *lab.Request) (*http.Response, error) {
			wire.SetFault(lab.Once(lab.Call.Renews, func(r *lab.Request) (*http.Response, error) {
				defer close(renewed)
				return r.Send()
			}))
			another()
			leave()
			return lab.Slow(2300 * time.Millisecond)(r) // the reply comes within the goroutine's lease of 3 s
		})
		w.Release(lock)
		lab.WantErr(t, "cancelled waiter", <-left, context.Canceled)
		select {
		case <-renewed:
		default:
			t.Error("bad setup: no renewal was sent")
		}
		w.WantReleased("job")
		_ = c.Close(t.Context())
	})
}

func TestCloseSucceedsDuringHandOver(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		goOn := make(chan struct{})
		c, wire, lock, another := crowded(w, goOn)
		leave, left := mayLeave(w, c)
		wire.SetFault(func(r *lab.Request) (*http.Response, error) {
			wire.SetFault(nil)
			another()
			leave()
			return r.Send()
		})
		released := lab.Go(func() error { return lock.Release(t.Context()) })
		lab.WantErr(t, "cancelled waiter", <-left, context.Canceled)
		synctest.Wait()
		closed := lab.Go(func() error { return c.Close(t.Context()) })
		w.WantReleased("job")
		close(goOn)
		lab.WantErr(t, "release and close", errors.Join(<-released, <-closed), nil)
	})
}

func TestWaiterAcquiresKeyAfterUnansweredHandOver(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire, lock := w.Holding(lab.Config())
		granted := w.Queue(c, "job")
		wire.SetFault(lab.Cut)
		lab.WantErr(t, "release", lock.Release(w.Within(5*time.Second)), leasehold.ErrUnknownOutcome)
		lab.Elapse(3 * time.Second)
		wire.SetFault(nil)
		began := time.Now()
		next := <-granted
		lab.WantTook(t, "next holder waited", began, 0, 7*time.Second)
		w.Release(next)
	})
}

func TestFailingHandOverIsAbandonedWhenLeaseExpires(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire, lock := w.Holding(lab.Config())
		granted := w.Queue(c, "job")
		var lost atomic.Bool
		wire.SetFault(func(r *lab.Request) (*http.Response, error) {
			if r.Grants() && !lost.Swap(true) {
				return nil, lab.ErrReset
			}
			return lab.Refusal(400, "ThrottlingException"), nil
		})
		time.AfterFunc(time.Hour, func() { wire.SetFault(nil) })
		began := time.Now()
		lab.WantErr(t, "release", lock.Release(t.Context()), leasehold.ErrUnknownOutcome)
		lab.WantTook(t, "release took", began, 0, 25*time.Second)
		wire.SetFault(nil)
		w.Release(<-granted)
	})
}

func TestWaiterAcquiresKeyFreedDuringHandOver(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire, lock := w.Holding(lab.Config())
		granted := w.Queue(c, "job")
		wire.SetFault(lab.Once(lab.Call.HandsOver, func(r *lab.Request) (*http.Response, error) {
			res, err := lab.LoseReply(r)
			// An operator marks the record as released by hand, without a new version.
			w.Update("job", map[string]types.AttributeValue{"isReleased": lab.Str("1")})
			return res, err
		}))
		w.Release(lock)
		next := <-granted
		lab.WantErr(t, "renewal by the next holder", next.Renew(t.Context()), nil)
		lab.Want(t, "record of the next holder is released", w.IsReleased("job"), false)
		w.Release(next)
	})
}

func TestReleaseReturnsNilIfNextWaiterIsCancelled(t *testing.T) {
	for what, becomes := range map[string]func(w *lab.World){
		"deleted":  func(w *lab.World) { w.Delete("job") },
		"released": func(w *lab.World) { w.Update("job", map[string]types.AttributeValue{"isReleased": lab.Str("1")}) },
		"granted to other client": func(w *lab.World) {
			w.Update("job", map[string]types.AttributeValue{"grantId": lab.Str("another"), "recordVersionNumber": lab.Str("another")})
		},
	} {
		t.Run(what, func(t *testing.T) {
			lab.Each(t, map[string]lab.Fault{
				"hand-over applied": lab.Slow(100 * time.Millisecond), "hand-over lost": lab.Drop,
			}, func(t *testing.T, w *lab.World, hand lab.Fault) {
				c, wire, lock := w.Holding(lab.Config())
				leave, _ := mayLeave(w, c)
				handOver := lab.Once(lab.Call.HandsOver, func(r *lab.Request) (*http.Response, error) {
					leave() // the goroutine is cancelled while the hand-over to it is in flight
					return hand(r)
				})
				wire.SetFault(func(r *lab.Request) (*http.Response, error) {
					if r.Releases() {
						becomes(w)
					}
					return handOver(r)
				})
				lab.WantErr(t, "release", lock.Release(t.Context()), nil)
			})
		})
	}
}

// The first Release hands the key to a goroutine that is then cancelled. The release of the
// goroutine's grant is refused. Then "becomes" changes the record, so that it shows neither the
// done mark nor that grant. A second Release, with MarkDone, must fail, but not with ErrLost: the
// first Release ended the grant.
func TestReleaseWithMarkDoneOptionFailsAfterEarlierHandOver(t *testing.T) {
	lab.Each(t, map[string]func(w *lab.World){
		"deleted":                 func(w *lab.World) { w.Delete("job") },
		"released":                func(w *lab.World) { w.Update("job", map[string]types.AttributeValue{"isReleased": lab.Str("1")}) },
		"granted to other client": func(w *lab.World) { w.Steal("job") },
	}, func(t *testing.T, w *lab.World, becomes func(w *lab.World)) {
		c, wire, lock := w.Holding(lab.Config(), leasehold.Once("mon"))
		leave, _ := mayLeave(w, c)
		wire.SetFault(leavesUnderHandOver(leave, lab.Slow(100*time.Millisecond)))
		lab.WantFailed(t, "refused release of the next grant", lock.Release(t.Context()))
		wire.SetFault(nil)
		becomes(w)
		err := lock.Release(t.Context(), leasehold.MarkDone())
		if err == nil || errors.Is(err, leasehold.ErrLost) || errors.Is(err, leasehold.ErrUnknownOutcome) || w.Item("job")["lastDone"] != nil {
			t.Errorf("error %v, record %v", err, w.Item("job"))
		}
	})
}

// leavesUnderHandOver returns a fault that refuses all releases. At the first hand-over, the
// returned fault calls leave, which cancels the waiting goroutine. Then it applies the fault "hand"
// to the hand-over.
func leavesUnderHandOver(leave func(), hand lab.Fault) lab.Fault {
	handOver := lab.Once(lab.Call.HandsOver, func(r *lab.Request) (*http.Response, error) {
		leave()
		return hand(r)
	})
	return func(r *lab.Request) (*http.Response, error) {
		if r.Releases() {
			return lab.Refusal(400, "AccessDeniedException"), nil
		}
		return handOver(r)
	}
}

func TestRefusedReleaseAfterRepeatedHandOverHasKnownOutcome(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire, lock := w.Holding(lab.Config())
		leave, _ := mayLeave(w, c)
		wire.SetFault(leavesUnderHandOver(leave, lab.Drop))
		if err := lock.Release(t.Context()); !errors.As(err, new(*leasehold.OpError)) || errors.Is(err, leasehold.ErrUnknownOutcome) {
			t.Errorf("error %v", err)
		}
		wire.SetFault(nil)
		w.Release(lock)
	})
}

func TestWaiterAcquiresKeyAfterRefusedHandOver(t *testing.T) {
	lab.Each(t, map[string]bool{
		"first waiter stays": false, "first waiter leaves": true,
	}, func(t *testing.T, w *lab.World, leaves bool) {
		c, wire, lock := w.Holding(lab.Config())
		ctx, leave := context.WithCancel(t.Context())
		defer leave()
		granted := make(chan *leasehold.Lock, 2)
		for _, ctx := range []context.Context{ctx, t.Context()} {
			go func() {
				if l, err := c.Acquire(ctx, "job"); err == nil {
					granted <- l
				}
			}()
			synctest.Wait()
		}
		wire.SetFault(lab.Once(lab.Call.Grants, func(*lab.Request) (*http.Response, error) {
			if leaves {
				leave()
				synctest.Wait()
			}
			return lab.Refusal(400, "AccessDeniedException"), nil
		}))
		began := time.Now()
		if err := lock.Release(t.Context()); !errors.As(err, new(*leasehold.OpError)) || errors.Is(err, leasehold.ErrUnknownOutcome) {
			t.Errorf("error %v", err)
		}
		w.Release(<-granted)
		if !leaves {
			w.Release(<-granted)
		}
		lab.WantTook(t, "release took", began, 0, time.Second)
	})
}

func TestReleaseThatStoresDataOrDeletesRecordDoesNotHandOverKey(t *testing.T) {
	type row struct {
		opt  leasehold.ReleaseOption
		want string
	}
	lab.Each(t, map[string]row{
		"data":    {leasehold.WithData([]byte("left")), "left"},
		"deleted": {leasehold.DeleteOnRelease(true), ""},
	}, func(t *testing.T, w *lab.World, tc row) {
		c, wire, lock := w.Holding(lab.Config(), leasehold.WithData([]byte("right")))
		granted := w.Queue(c, "job")
		wire.Sent()
		w.Release(lock, tc.opt)
		next := <-granted
		lab.Want(t, "data for the next holder", string(next.Record().Data), tc.want)
		lab.Want(t, "requests", len(wire.Sent()), 2)
		w.Release(next)
	})
}

// mostNamed returns the length of the longest list of versions in the condition of a request.
func mostNamed(c lab.Call) int {
	most := 0
	for _, in := range regexp.MustCompile(` IN \(([^)]*)\)`).FindAllSubmatch(c.Body, -1) {
		most = max(most, bytes.Count(in[1], []byte(":")))
	}
	return most
}

func TestHandOverConditionContainsAtMost100RecordVersions(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		cfg := lab.Config()
		cfg.Lease = time.Hour
		c, wire, lock := w.Holding(cfg, leasehold.WithoutRenewal())
		granted := w.Queue(c, "job")
		wire.SetFault(lab.On(isUpdate, lab.Drop))
		for range 20 {
			_ = lock.Renew(w.Within(20 * time.Second))
		}
		wire.Sent()
		lab.WantErr(t, "release", lock.Release(t.Context()), leasehold.ErrUnknownOutcome)
		most, handOvers := 0, 0
		for _, sent := range wire.Sent() {
			if sent.HandsOver() {
				handOvers++
				most = max(most, mostNamed(sent))
			}
		}
		if most > 100 || handOvers < 50 {
			t.Errorf("%d hand-overs name up to %d versions; DynamoDB allows 100", handOvers, most)
		}
		wire.SetFault(nil)
		w.Release(<-granted)
	})
}

func TestHandOverWithinProcessGrantsKeyUnderSameSession(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire, lock := w.Holding(lab.SharedConfig())
		before := w.Item("job")
		granted := w.Queue(c, "job")
		wire.Sent()
		w.Release(lock)
		next := <-granted
		if sent := wire.Sent(); len(sent) != 1 || !sent[0].HandsOver() {
			t.Fatalf("bad setup: sent %v", lab.Ops(sent))
		}
		for _, name := range []string{"session", "ownerName"} {
			lab.Want(t, name, lab.Text(w.Item("job"), name), lab.Text(before, name))
		}
		w.MarkDead(w.Sessions()[0])
		lab.Elapse(5 * time.Second) // let the session be renewed
		lab.WantErr(t, "lock of the dead session", next.Err(), leasehold.ErrLost)
	})
}

func TestWaiterBehindResumedLockAcquiresKeyUnderSharedLease(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		first, _ := w.Client(lab.Config())
		g := w.Detach(w.Acquire(first, "job"))
		c, _ := w.Client(lab.SharedConfig())
		resumed := w.Resume(c, g)
		granted := w.Queue(c, "job")
		w.Release(resumed)
		<-granted
		item := w.Item("job")
		if id := lab.Text(item, "session"); id == "" || !strings.HasSuffix(lab.Text(item, "ownerName"), "/"+id) {
			t.Errorf("the lock is not under a session: %v", item)
		}
		_ = c.Close(t.Context())
	})
}

// The record is damaged while a goroutine waits. The hand-over to the goroutine is applied, but
// nobody can hold the key by it.
func TestHandOverOfDamagedRecordIsUndone(t *testing.T) {
	lab.Each(t, lab.Leases(), func(t *testing.T, w *lab.World, cfg leasehold.Config) {
		c, _, lock := w.Holding(cfg)
		waited := lab.Go(func() error { return lab.ErrorOf(c.Acquire(t.Context(), "job")) })
		w.Update("job", map[string]types.AttributeValue{"data": lab.Str("text")})
		lab.WantFailed(t, "release", lock.Release(t.Context()))
		lab.WantAs[*leasehold.RecordError](t, "acquire", <-waited)
		lab.Elapse(time.Minute)
		w.WantReleased("job")
	})
}
