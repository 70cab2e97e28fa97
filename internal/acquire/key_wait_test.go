package acquire_test

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/internal/protocol"
)

// The waiters of the library dynamo-dlm would fail this test: they read without pauses.
func TestWaiterReadsAtMostSixTimesPerSecond(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		_, _, lock := w.Holding(lab.Config())
		lab.Elapse(time.Minute) // a waiter reads less often if the grant is as old as this one
		b, wire := w.Client(lab.Config())
		_, _ = b.Acquire(w.Within(time.Minute), "job")
		lab.WantRange(t, "reads in a minute", len(wire.Sent()), 60, 350)
		w.Release(lock)
	})
}

func TestWatchReadsFreeKeyLessAndLessOften(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.Config())
		for _, err := range c.Watch(w.Within(10*time.Minute), "job") {
			lab.OK(t, err)
		}
		lab.WantRange(t, "reads in ten minutes", len(wire.Sent()), 600, 2500)
	})
}

func TestEventWaitingIsEmittedOncePerHolderIfQueueIsSuspended(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		_, _, lock := w.Holding(lab.Config())
		w.Suspend("job", time.Hour)
		var owners []string
		cfg := lab.Config()
		cfg.OnEvent = func(_ context.Context, e leasehold.Event) {
			if e.Kind == leasehold.EventWaiting {
				owners = append(owners, e.Holder.Owner)
			}
		}
		c, _ := w.Client(cfg)
		time.AfterFunc(5*time.Second, func() { w.Steal("job") })
		_, _ = c.Acquire(w.Within(10*time.Second), "job")
		lab.Want(t, "reported holders", owners, []string{lock.Record().Owner, lab.Text(w.Item("job"), "ownerName")})
	})
}

// If the holder's record is deleted, a waiter of the library dynamolock panics.
func TestWaiterAcquiresKeyIfRecordIsDeleted(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		dead := w.LeavesHeld(lab.Config(), 0, "job")[0]
		b, _ := w.Client(lab.Config())
		granted := w.Queue(b, "job")
		lab.Elapse(5 * time.Second)
		w.Delete("job")
		began := time.Now()
		lock := <-granted
		lab.WantTook(t, "granted after the record was deleted", began, 0, time.Second)
		w.Release(lock)
		_ = dead.Release(t.Context())
	})
}

// Each TryAcquire continues the observation of the holder that earlier calls began. In some
// other lock libraries, each try-lock begins a new observation.
func TestRepeatedTryAcquireTakesOverAfterOneLease(t *testing.T) {
	lab.Each(t, lab.Leases(), func(t *testing.T, w *lab.World, cfg leasehold.Config) {
		w.LeavesHeld(cfg, time.Hour, "job")
		b, _ := w.Client(lab.Config())
		isRefused := func(what string, c *leasehold.Client) {
			began := time.Now()
			_, err := c.TryAcquire(t.Context(), "job", leasehold.NoWaitEvenIfDead())
			lab.WantErr(t, what, err, leasehold.ErrHeld)
			lab.WantTook(t, what, began, 0, 0)
		}
		isRefused("first try", b)
		lab.Elapse(20*time.Second - time.Millisecond)
		isRefused("a moment before the lease ends", b)
		lab.Elapse(time.Millisecond)
		other, _ := w.Client(lab.Config()) // a new client: it must observe the holder for a whole lease
		isRefused("first try of another client", other)
		w.Release(lab.Must(b.TryAcquire(t.Context(), "job", leasehold.NoWaitEvenIfDead()))(t))
	})
}

func TestWaiterRespectsLeaseOfDynamolockHolder(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		a, _ := w.Client(lab.Config())
		w.Release(w.Acquire(a, "job"))
		w.Update("job", map[string]types.AttributeValue{"isReleased": nil, "ownerName": lab.Str("dynamolock"), "leaseDuration": lab.Str("8s"), "recordVersionNumber": lab.Str("x")})
		_, err := a.TryAcquire(t.Context(), "job")
		var held *leasehold.HeldError
		if !errors.As(err, &held) || held.Holder.Token != 0 || held.Holder.Lease != 8*time.Second {
			t.Fatalf("error %v", err)
		}
		began := time.Now()
		w.Release(w.Acquire(a, "job"))
		lab.WantTook(t, "taken over after", began, 8*time.Second-time.Millisecond, 9*time.Second)
	})
}

func TestJumpOfBootClockDoesNotCauseTakeover(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		_, _, lock := w.Holding(lab.Config())
		k := &lab.Jumps{}
		b, _ := w.Client(lab.Config(), k.Edit)
		lab.WantErr(t, "TryAcquire", lab.ErrorOf(b.TryAcquire(t.Context(), "job")), leasehold.ErrHeld)
		k.Boot.Store(int64(time.Hour))
		lab.WantErr(t, "TryAcquire after the boot clock has jumped by an hour", lab.ErrorOf(b.TryAcquire(t.Context(), "job")), leasehold.ErrHeld)
		w.Release(lock)
	})
}

func TestTryAcquireTimesOutIfAcquireOfSameClientHangs(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.Config())
		wire.SetFault(lab.Cut)
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		lab.Go(func() error { return lab.ErrorOf(c.Acquire(ctx, "job")) })
		began := time.Now()
		lab.WantFailed(t, "TryAcquire", lab.ErrorOf(c.TryAcquire(ctx, "job")))
		lab.WantTook(t, "TryAcquire took", began, 0, 15*time.Second)
		cancel()
		lab.Elapse(10 * time.Second)
	})
}

func TestTryAcquireFailsAsSoonAsCallAheadInQueueGetsItsReply(t *testing.T) {
	lab.Each(t, map[string]bool{"held by own client": false, "held by other process": true}, func(t *testing.T, w *lab.World, foreign bool) {
		c, wire := w.Client(lab.Config())
		if foreign {
			_, _, lock := w.Holding(lab.Config())
			defer w.Release(lock)
		}
		wire.SetFault(lab.Once(lab.Call.Grants, lab.Slow(time.Second)))
		ctx := w.Within(5 * time.Second)
		ahead := lab.Go(func() error {
			l, err := c.Acquire(ctx, "job")
			if err == nil {
				time.Sleep(3 * time.Second)
				w.Release(l)
			}
			return err
		})
		began := time.Now()
		lab.WantErr(t, "TryAcquire", lab.ErrorOf(c.TryAcquire(t.Context(), "job")), leasehold.ErrHeld)
		lab.Want(t, "took", time.Since(began), time.Second)
		<-ahead
	})
}

func TestAcquireWithoutRenewalReleasesKeyOnTimeout(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.Config())
		wire.SetFault(lab.Once(lab.Call.Grants, lab.Slow(time.Second)))
		lab.WantErr(t, "Acquire", lab.ErrorOf(c.Acquire(w.Within(100*time.Millisecond), "job", leasehold.WithoutRenewal())), context.DeadlineExceeded)
		w.WantReleased("job")
		wire.SetFault(lab.Cut)
		began := time.Now()
		_, _ = c.Acquire(w.Within(100*time.Millisecond), "job", leasehold.WithoutRenewal())
		lab.WantTook(t, "Acquire, which waits for ReleaseGrace at most, took", began, 0, 2100*time.Millisecond)
		wire.SetFault(nil)
		lab.Elapse(10 * time.Second)
	})
}

func TestTakeoverIsRejectedIfRenewalIsAppliedFirst(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		a, wireA := w.Client(lab.Config())
		b, wireB := w.Client(lab.Config())
		w.Acquire(a, "job")
		began := time.Now()
		var renewal func() (*http.Response, error)
		wireA.SetFault(func(r *lab.Request) (*http.Response, error) {
			if renewal == nil {
				renewal = r.Send
			}
			return lab.Cut(r)
		})
		var landed time.Time
		wireB.SetFault(func(r *lab.Request) (*http.Response, error) {
			if r.Grants() && landed.IsZero() && time.Since(began) > 19*time.Second {
				_, _ = renewal()
				landed = time.Now()
			}
			return r.Send()
		})
		w.Acquire(b, "job")
		// If the renewal was never applied, landed is the zero time, and the measured time is many
		// years.
		lab.WantTook(t, "taken over, after the renewal was applied,", landed, 20*time.Second, 22*time.Second)
		_ = a.Close(t.Context())
	})
}

// waitsCalmly makes a call that waits for up to a minute, and returns the call's error.
// Every 25 ms the call may read the holder's record once, and the row of the holder's
// session once. The test fails if the call sends more reads.
func waitsCalmly(w *lab.World, c *leasehold.Client, wire *lab.Wire) error {
	w.T.Helper()
	lock, err := c.Acquire(w.Within(time.Minute), "job")
	lab.WantRange(w.T, "requests in a minute", len(wire.Sent()), 0, 2*60*40)
	if err == nil {
		w.Release(lock)
	} else if !errors.Is(err, context.DeadlineExceeded) && !errors.As(err, new(*leasehold.RecordError)) {
		w.T.Error(err)
	}
	return err
}

type item = map[string]types.AttributeValue

// merged returns an item with the attributes of all given items. If several items have an
// attribute of the same name, the value in the last item counts.
func merged(items ...item) item {
	all := item{}
	for _, one := range items {
		maps.Copy(all, one)
	}
	return all
}

const (
	malloryID = "abcdefghijklmnopqrstuvwxyz"
	malloryAt = "leasehold/session/" + malloryID // key of the row of Mallory's session
)

var (
	javas       = item{"key": lab.Str("job"), "ownerName": lab.Str("java"), "leaseDuration": lab.Str("1"), "recordVersionNumber": lab.Str("v")}
	underShared = item{"session": lab.Str(malloryID), "leaseDuration": lab.Str("3600000")}
	ofShared    = item{"key": lab.Str(malloryAt), "kind": lab.Str("session")}
)

// mallorys returns the record of a grant to client Mallory, as leasehold writes it, but with a
// lease of 1 ms. The attributes in the parameter "more" are added, or replace those of the record.
func mallorys(more ...item) item {
	v := lab.Str(protocol.NewVersion())
	grant := item{"ownerName": lab.Str("mallory/" + malloryID), "grantId": v, "recordVersionNumber": v, "fencingToken": lab.Num("1")}
	return merged(javas, grant, merged(more...))
}

// A client that may write a key can store anything in the key's record. The key's waiters must
// still pause between their reads, for any content of the record.
func TestContentOfRecordCannotMakeWaiterReadWithoutPauses(t *testing.T) {
	lab.Each(t, map[string]item{
		"a token that is not a number":    {"fencingToken": lab.Str("1")},
		"a token out of range":            {"fencingToken": lab.Num("1e30")},
		"a token below zero":              {"fencingToken": lab.Num("-1")},
		"a token that is a fraction":      {"fencingToken": lab.Num("1.5")},
		"the largest token":               {"fencingToken": lab.Num("9007199254740990")},
		"a grant id of another type":      {"grantId": lab.Num("1")},
		"the attribute kind":              {"kind": lab.Str("rw")},
		"a release mark that is a number": {"isReleased": lab.Num("1")},
		"a release mark of 0":             {"isReleased": lab.Str("0")},
		"a lease below zero":              {"leaseDuration": lab.Str("-1")},
		"a session without a row":         mallorys(item{"session": lab.Str(malloryID)}),
		"a lease of 1 ms":                 mallorys(),
	}, func(_ *testing.T, w *lab.World, odd item) {
		c, wire := w.Client(lab.Config())
		w.Put(merged(javas, odd))
		waitsCalmly(w, c, wire)
	})
	lab.Each(t, map[string]func() item{
		"a version that changes with every request": func() item {
			return merged(javas, item{"recordVersionNumber": lab.Str(protocol.NewVersion())})
		},
		"a grant that changes with every request":            func() item { return mallorys() },
		"a session whose version changes with every request": func() item { return mallorys(ofShared) },
	}, func(t *testing.T, w *lab.World, moving func() item) {
		c, wire := w.Client(lab.Config())
		w.Put(mallorys(underShared))
		wire.SetFault(func(r *lab.Request) (*http.Response, error) {
			w.Put(moving())
			return r.Send()
		})
		lab.WantErr(t, "the wait", waitsCalmly(w, c, wire), context.DeadlineExceeded)
	})
}

// A client that may write the rows of shared leases can end these leases, or keep a dead client's
// lease alive. A forged row must do no other harm, such as making waiters send more requests.
func TestForgedSessionRowDoesNotCauseExtraRequests(t *testing.T) {
	lab.Each(t, map[string]item{
		"a lease of MaxInt64 ms":           {"leaseDuration": lab.Str("9223372036854775807")},
		"a lease of zero":                  {"leaseDuration": lab.Str("0")},
		"a lease below zero":               {"leaseDuration": lab.Str("-9223372036854775808")},
		"a lease of 1e200000000 ms":        {"leaseDuration": lab.Str("1e200000000")},
		"a lease of another type":          {"leaseDuration": lab.Num("20000")},
		"the row of another owner":         {"ownerName": lab.Str("bob/" + protocol.NewVersion())},
		"a row without the attribute kind": {"kind": nil},
		"a row under its own session":      {"session": lab.Str(malloryID)},
		"break notices of another type":    {"brokenGrants": lab.Str("all")},
	}, func(_ *testing.T, w *lab.World, forged item) {
		c, wire := w.Client(lab.Config())
		w.Put(mallorys(underShared))
		w.Put(mallorys(ofShared, item{"leaseDuration": lab.Str("20000")}))
		w.Update(malloryAt, forged)
		waitsCalmly(w, c, wire)
	})
}
