package hold_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
)

// told returns the number of break notices in the row of the table's only session, or -1 if
// the row has no attribute for notices.
func told(w *lab.World) int {
	m, _ := w.Item(w.Sessions()[0])["brokenGrants"].(*types.AttributeValueMemberM)
	if m == nil {
		return -1
	}
	return len(m.Value)
}

// lostByBreak fails the test unless the lock was lost by a break, and the lock's error
// contains the reason of the break.
func lostByBreak(t *testing.T, lock *leasehold.Lock, reason string) {
	t.Helper()
	var lost *leasehold.LostError
	if err := lock.Err(); !errors.As(err, &lost) || lost.Reason != leasehold.LostBroken ||
		lost.By == nil || lost.By.Broken == nil || lost.By.Broken.Reason != reason {
		t.Errorf("%v after its break: %v", lock.Key(), err)
	}
}

func TestHolderNoticesBreakAtNextSessionRenewal(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.SharedConfig())
		broken, others := w.Acquire(c, "job"), []*leasehold.Lock{w.Acquire(c, "a"), w.Acquire(c, "b")}
		op, opWire := w.Client(lab.Config())
		wire.Sent()
		w.Break(op, broken, "stuck")
		lab.Want(t, "requests of a break of one grant", len(opWire.Sent()), 2)
		lab.Elapse(5 * time.Second) // let the session be renewed
		lostByBreak(t, broken, "stuck")
		lab.Elapse(55 * time.Second)
		sent := wire.Sent()
		renewals := lab.Count(sent, lab.Call.RenewsSession)
		lab.WantRange(t, "renewals of the session in a minute", renewals, 0, 13)
		lab.Want(t, "other requests", len(sent)-renewals, 1)
		lab.Want(t, "break notices", told(w), 0)
		for _, lock := range others {
			lab.WantErr(t, lock.Key().String(), lock.Err(), nil)
			w.Release(lock)
		}
		_ = c.Close(t.Context())
	})
}

func TestHolderNoticesBreakOfLockEvenIfRenewalRepliesAreLost(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire, lock := w.Holding(lab.SharedConfig())
		op, _ := w.Client(lab.Config())
		lost := 0
		wire.SetFault(func(r *lab.Request) (*http.Response, error) {
			if lost < 4 && (r.RenewsSession() || r.Renews()) {
				lost++
				return lab.LoseReply(r)
			}
			return r.Send()
		})
		w.Break(op, lock, "stuck")
		lab.Elapse(15 * time.Second)
		if lost < 2 {
			t.Fatal("bad setup: fewer than two replies were lost")
		}
		lostByBreak(t, lock, "stuck")
		lab.Elapse(15 * time.Second)
		lab.Want(t, "break notices", told(w), 0)
		_ = c.Close(t.Context())
	})
}

func TestHolderNoticesThatManyLocksAreBrokenAtOnce(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, _ := w.Client(lab.SharedConfig())
		locks := w.AcquireMany(c, "lock", 200)
		var wg sync.WaitGroup
		for i, lock := range locks[1:] {
			op, _ := w.Client(lab.Config())
			for range 1 + i%2 { // every second lock is broken by two concurrent calls
				wg.Go(func() {
					if err := op.Break(t.Context(), lock.Record(), leasehold.BreakOptions{Reason: "all"}); err != nil && !errors.Is(err, leasehold.ErrChanged) {
						t.Error(err)
					}
				})
			}
		}
		wg.Wait()
		lab.Elapse(6 * time.Second)
		for _, lock := range locks[1:] {
			lostByBreak(t, lock, "all")
		}
		lab.WantErr(t, "lock that was not broken", locks[0].Err(), nil)
		// Let the session be renewed until all notices are removed. Each renewal removes up
		// to a hundred notices.
		lab.Elapse(10 * time.Second)
		lab.Want(t, "break notices", told(w), 0)
		_ = c.Close(t.Context())
	})
}

// refusesChecks returns a fault that refuses the first n checks of a lock's own record, and then
// applies the given fault to all requests.
func refusesChecks(n int, then lab.Fault) lab.Fault {
	return func(r *lab.Request) (*http.Response, error) {
		if r.Renews() && !r.RenewsSession() && n > 0 {
			n--
			return lab.Refusal(400, "AccessDeniedException"), nil
		}
		return then(r)
	}
}

func TestLockIsLostIfBrokenBeforeGrantReplyArrives(t *testing.T) {
	type row struct {
		refused int
		after   time.Duration
	}
	lab.Each(t, map[string]row{
		"check answered":     {0, time.Second},
		"two checks refused": {2, 4 * time.Second}, // the session is renewed three times in this time
	}, func(t *testing.T, w *lab.World, tc row) {
		cfg := lab.SharedConfig()
		cfg.Lease = 4 * time.Second // the session is renewed every second
		c, wire := w.Client(cfg)
		w.Acquire(c, "other")
		wire.SetFault(refusesChecks(tc.refused, lab.Once(lab.Call.Grants, lab.Slow(2900*time.Millisecond))))
		granted := w.Queue(c, "job")
		lab.Elapse(100 * time.Millisecond)
		op, _ := w.Client(lab.Config())
		record := lab.Must(op.Get(t.Context(), "job"))(t)
		lab.OK(t, op.Break(t.Context(), record, leasehold.BreakOptions{Reason: "stuck"}))
		lab.Elapse(2500 * time.Millisecond)
		lab.Want(t, "break notices", told(w), 0) // the client has read and removed the notice of the break
		lock := <-granted
		lab.Elapse(tc.after)
		lostByBreak(t, lock, "stuck")
		_ = c.Close(t.Context())
	})
}

func TestHolderNoticesBreakAfterTwoRefusedChecks(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire, lock := w.Holding(lab.SharedConfig())
		op, _ := w.Client(lab.Config())
		wire.SetFault(refusesChecks(2, (*lab.Request).Send))
		w.Break(op, lock, "stuck")
		lab.Elapse(16 * time.Second) // let the session be renewed three times
		lostByBreak(t, lock, "stuck")
		_ = c.Close(t.Context())
	})
}

func TestFalseBreakNoticeDoesNotEndLock(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		// The notice must cause only one check of the record. A regular renewal of the record would
		// count as another, so none may come during this test. With the random number 0.5, the
		// first regular renewal comes after ten minutes.
		half := lab.Chance(func() float64 { return 0.5 })
		c, wire := w.Client(lab.SharedConfig(), half)
		lock := w.Acquire(c, "job")
		w.Update(w.Sessions()[0], map[string]types.AttributeValue{"brokenGrants": &types.AttributeValueMemberM{
			Value: map[string]types.AttributeValue{"one": lab.Str(lock.Record().Grant), "of an earlier one": lab.Str("gone"), "by hand": lab.Num("1")},
		}})
		wire.Sent()
		lab.Elapse(time.Minute)
		looks := lab.Count(wire.Sent(), func(c lab.Call) bool { return !c.RenewsSession() })
		if err := lock.Err(); err != nil || looks != 1 || told(w) != 0 {
			t.Errorf("%v after %d reads; %d break notices", err, looks, told(w))
		}
		w.Release(lock)
		_ = c.Close(t.Context())
	})
}

func TestHolderNoticesBreakOfLockEvenIfEarlierBreakHadFailed(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, _, lock := w.Holding(lab.SharedConfig())
		lab.Elapse(5 * time.Second) // let the session's first renewals pass; later ones come every 5 s
		op, wire := w.Client(lab.Config())
		wire.SetFault(lab.Once(lab.Call.Releases, lab.Cut))
		lab.WantErr(t, "break without a reply", op.Break(w.Within(time.Second), lock.Record(), leasehold.BreakOptions{}), leasehold.ErrUnknownOutcome)
		lab.Elapse(5 * time.Second) // long enough for the client to read the notice, but not to remove it
		lab.WantErr(t, "lock", lock.Err(), nil)
		lab.Want(t, "break notices", told(w), 1)
		w.Break(op, lock, "stuck")
		lab.Elapse(5 * time.Second)
		lostByBreak(t, lock, "stuck")
		_ = c.Close(t.Context())
	})
}

func TestForgedBreakNoticesDoNotStopRenewals(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire, lock := w.Holding(lab.SharedConfig())
		words := map[string]types.AttributeValue{}
		for i := range 3000 {
			words[fmt.Sprintf("%d#.:[0] %s", i, strings.Repeat("w", 80))] = lab.Str(lock.Record().Grant)
		}
		w.Update(w.Sessions()[0], map[string]types.AttributeValue{"brokenGrants": &types.AttributeValueMemberM{Value: words}})
		wire.Sent()
		lab.Elapse(10 * time.Minute)
		lab.WantErr(t, "lock", lock.Err(), nil)
		lab.Want(t, "break notices after ten minutes", told(w), 0)
		// The limit is one check for each of 3000 notices, and the renewals of the session.
		lab.WantRange(t, "requests in ten minutes", len(wire.Sent()), 0, 3000+200)
		w.Release(lock)
		_ = c.Close(t.Context())
	})
}
