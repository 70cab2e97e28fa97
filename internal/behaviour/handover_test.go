package behaviour_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
)

// leased returns the configuration of a client whose leases have the given length.
func leased(lease time.Duration) leasehold.Config {
	cfg := lab.Config()
	cfg.Lease = lease
	return cfg
}

// handed makes a holder hand the key to a waiter that has been in the queue for a while. It returns
// the waiter's lock, and the time of the waiter's last read that did not show the hand-over yet.
func handed(t *testing.T, w *lab.World, holds, waits leasehold.Config) (next *leasehold.Lock, unseen time.Time) {
	t.Helper()
	l := inOrderBehind(t, w, holds, 1, waits)
	lab.Elapse(10 * time.Second)
	var asked []time.Time
	l.wires[0].SetFault(func(r *lab.Request) (*http.Response, error) {
		asked = append(asked, time.Now())
		return lab.Far(100 * time.Millisecond)(r)
	})
	lab.Elapse(2 * time.Second)
	renew(w, l.lock)
	before := len(asked)
	w.Release(l.lock)
	next = <-l.got[0]
	lab.Want(t, "token of the next grant", next.Token(), l.lock.Token()+1)
	return next, asked[max(before-1, len(asked)-2)]
}

func TestLeaseOfHandOverDependsOnLeaseOfFormerHolder(t *testing.T) {
	shared := leased(4 * time.Second)
	shared.SharedLease = true
	type row struct {
		cfg  leasehold.Config
		want time.Duration
	}
	lab.Each(t, map[string]row{
		"1 s":         {leased(time.Second), time.Second},
		"2 s":         {leased(2 * time.Second), 2 * time.Second},
		"5 s":         {leased(5 * time.Second), 3 * time.Second},
		"12 s":        {leased(12 * time.Second), 6 * time.Second},
		"1 min":       {leased(time.Minute), 10 * time.Second},
		"4 s, shared": {shared, 3 * time.Second}, // the session's lease of 4 s counts; the locks' own records have a lease of an hour
	}, func(t *testing.T, w *lab.World, tc row) {
		l := inOrderBehind(t, w, tc.cfg, 1, lab.Config())
		l.wires[0].SetFault(lab.Cut)
		w.Release(l.lock)
		lab.Want(t, "leaseDuration in ms", lab.Text(w.Item("job"), "leaseDuration"), strconv.FormatInt(tc.want.Milliseconds(), 10))
		l.leave[0]()
		_ = l.holder.Close(t.Context())
		lab.Elapse(20 * time.Second)
	})
}

// The waiter at the head of the queue may have died when the holder hands the key to it. The key is
// then blocked until the lease of the hand-over expires. This lease is never longer than the
// holder's lease, which is one second here.
func TestDeadHeadOfQueueBlocksKeyOnlyUntilHandOverExpires(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		l := inOrderBehind(t, w, leased(time.Second), 2, leased(time.Second))
		l.wires[0].SetFault(lab.Cut)
		w.Release(l.lock)
		began := time.Now()
		w.Release(<-l.got[1])
		lab.WantTook(t, "time until the second waiter acquired", began, 0, 1500*time.Millisecond)
		l.leave[0]()
		lab.Elapse(10 * time.Second)
	})
}

func TestQueueHeadCountsHandOverLeaseFromLastReadBeforeHandOver(t *testing.T) {
	type row struct {
		holds, waits leasehold.Config
		want         time.Duration // nine tenths of the shorter of two leases: the hand-over's and the waiter's own
	}
	lab.Each(t, map[string]row{
		"lease of the hand-over":       {lab.Config(), lab.Config(), handOverLease * 9 / 10},
		"short lease of the hand-over": {leased(2 * time.Second), lab.Config(), 1800 * time.Millisecond},
		"lease of the waiter":          {lab.Config(), leased(5 * time.Second), 4500 * time.Millisecond},
	}, func(t *testing.T, w *lab.World, tc row) {
		next, unseen := handed(t, w, tc.holds, tc.waits)
		lab.Want(t, "trusted after the last read without the hand-over", next.TrustedUntil().Sub(unseen), tc.want)
		w.Release(next)
	})
}

func TestQueueHeadReplacesHandOverThatItCanTrustOnlyBriefly(t *testing.T) {
	// The head replaces a hand-over with its own grant if less than half of the hand-over's trusted
	// time is left, or less than one second. For a head with a short lease, the second limit is
	// lower: half of the time for which the head trusts its own grant.
	skewed := lab.Config()
	skewed.MaxSkew = 8200 * time.Millisecond // even a new hand-over is then trusted for only 800 ms
	cautious := lab.Config()
	cautious.Margin = 3 * time.Second // a hand-over for 10 s would have 1.5 s
	short := leased(time.Second)      // a grant is trusted for 900 ms, so the limit is 450 ms
	type row struct {
		cfg     leasehold.Config
		silent  time.Duration // how long the waiter's requests are throttled, so that the waiter reads the hand-over late
		replace bool
	}
	lab.Each(t, map[string]row{
		"most of the trust is left":    {lab.Config(), 0, false},
		"more than half is left":       {lab.Config(), 2 * time.Second, false},
		"less than half is left":       {lab.Config(), 6 * time.Second, true},
		"less than a second is left":   {skewed, 0, true},
		"a margin above the default":   {cautious, 0, true},
		"short lease, most of it left": {short, 0, false},
		"short lease, less than half":  {short, 600 * time.Millisecond, true},
	}, func(t *testing.T, w *lab.World, tc row) {
		l := inOrderBehind(t, w, tc.cfg, 1, tc.cfg)
		l.wires[0].SetFault(lab.Throttled)
		w.Release(l.lock)
		time.AfterFunc(tc.silent, func() { l.wires[0].SetFault(nil) })
		next := <-l.got[0]
		lab.Want(t, "hand-over replaced by a grant", next.Token() == l.lock.Token()+2, tc.replace)
		w.Release(next)
	})
}

// A waiter can trust a hand-over only briefly if the holder's lease or the waiter's own lease is
// short. So the waiter must read the record often, to notice the hand-over in time.
func TestWaiterReadsRecordFourTimesPerLeaseIfLeaseIsShort(t *testing.T) {
	type row struct{ holds, waits leasehold.Config }
	lab.Each(t, map[string]row{
		"holder's lease": {leased(time.Second), lab.Config()},
		"waiter's lease": {lab.Config(), leased(time.Second)},
	}, func(t *testing.T, w *lab.World, tc row) {
		l := inOrderBehind(t, w, tc.holds, 2, tc.waits)
		lab.Elapse(time.Minute)
		l.wires[1].Sent()
		lab.Elapse(10 * time.Second)
		lab.WantRange(t, "reads by the second waiter in ten seconds", lab.Count(l.wires[1].Sent(), lab.Call.Reads), 39, 45)
		w.Release(l.lock)
		l.releaseAll()
	})
}

func TestQueueHeadReadsFourTimesASecond(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		l := inOrder(t, w, 2, lab.Config())
		lab.Elapse(lab.Cases(time.Hour, 10*time.Minute))
		l.wires[0].Sent()
		l.wires[1].Sent()
		lab.Elapse(10 * time.Second)
		head, second := lab.Count(l.wires[0].Sent(), lab.Call.Reads), lab.Count(l.wires[1].Sent(), lab.Call.Reads)
		lab.WantRange(t, "reads by the head in ten seconds", head, 39, 41)
		lab.WantRange(t, "reads by the second waiter in ten seconds", second, 9, 11)
		w.Release(l.lock)
		l.releaseAll()
	})
}

func TestHandedOverLockIsRenewedAfterOneTenthOfLease(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		l := inOrderBehind(t, w, lab.Config(), 1, lab.Config(),
			leasehold.WithExpiryWarning(10*time.Second, func(*leasehold.Lock) { t.Error("warned, although renewals succeed") }))
		next := l.handOver(0)
		l.wires[0].Sent()
		lab.Elapse(handOverLease/10 - time.Millisecond)
		wantSent(t, l.wires[0], 0)
		lab.Elapse(2 * time.Millisecond)
		wantCount(t, "renewals", l.wires[0].Sent(), lab.Call.Renews, 1)
		lab.WantRange(t, "trust after the renewal", time.Until(next.TrustedUntil()), 17*time.Second, 18*time.Second)
		lab.Elapse(2 * time.Minute)
		lab.WantRange(t, "renewals in two minutes", lab.Count(l.wires[0].Sent(), lab.Call.Renews), 23, 27)
		w.Release(next)
	})
}

// In this test, the lease of the hand-over is half as long as the lease of a grant. So the new
// holder sends its first renewal early: if DynamoDB throttles that renewal, there is still time for
// retries.
func TestHandedOverLockSurvivesThrottledWrites(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		l := inOrder(t, w, 1, lab.Config())
		lab.Elapse(10 * time.Second)
		renew(w, l.lock)
		l.wires[0].SetFault(func(r *lab.Request) (*http.Response, error) {
			if r.Reads() {
				return r.Send()
			}
			return lab.Throttled(r)
		})
		next := l.handOver(0)
		lab.Elapse(8 * time.Second)
		l.wires[0].SetFault(nil)
		lab.Elapse(time.Minute)
		lab.WantErr(t, "Err", next.Err(), nil)
		w.Release(next)
	})
}

func TestDetachRenewsLockThatWasNotRenewedSinceHandOver(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		l := inOrder(t, w, 1, lab.Config())
		next := l.handOver(0)
		l.wires[0].Sent()
		g := w.Detach(next)
		wantCount(t, "renewals", l.wires[0].Sent(), lab.Call.Renews, 1)
		lab.WantRange(t, "trust", time.Until(g.TrustedUntil), 17*time.Second, 18*time.Second)
		lab.Elapse(15 * time.Second)
		again := w.Resume(l.heads[0], g)
		_ = w.Detach(again)
	})
}

func TestDetachSendsNothingIfLockWasRenewedSinceHandOver(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		l := inOrder(t, w, 1, lab.Config())
		next := l.handOver(0)
		lab.Elapse(2 * time.Second)
		l.wires[0].Sent()
		_ = w.Detach(next)
		wantSent(t, l.wires[0], 0)
	})
}

func TestFailedDetachAfterHandOverLeavesLockHeld(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		l := inOrder(t, w, 1, lab.Config())
		next := l.handOver(0)
		l.wires[0].SetFault(lab.Refused("AccessDeniedException"))
		lab.WantFailed(t, "detach", lab.ErrorOf(next.Detach()))
		l.wires[0].SetFault(nil)
		lab.WantErr(t, "Err", next.Err(), nil)
		w.Release(next)
		w.WantReleased("job")
	})
}

// suspended lets a holder hand the key to the first of three waiters, which is dead. The waiter
// that takes the key over suspends the queue: clients then poll instead of joining. The result
// "next" is the lock of this waiter.
func suspended(t *testing.T, w *lab.World) (l *lined, next *leasehold.Lock) {
	t.Helper()
	l = inOrder(t, w, 3, lab.Config())
	l.wires[0].SetFault(lab.Cut)
	w.Release(l.lock)
	select {
	case next = <-l.got[1]:
		l.got = l.got[2:]
	case next = <-l.got[2]:
		l.got = l.got[1:2]
	}
	return l, next
}

func (l *lined) joins() (n int) {
	for _, wire := range l.wires {
		n += lab.Count(wire.Sent(), joins)
	}
	return n
}

func TestTakeoverOfKeyHandedToDeadWaiterSuspendsQueue(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		l, next := suspended(t, w)
		defer func() {
			l.leave[0]()
			lab.Elapse(20 * time.Second)
		}()
		until, err := strconv.ParseInt(lab.Number(w.Item("job"), "noQueueUntil"), 10, 64)
		lab.WantErr(t, "noQueueUntil", err, nil)
		lab.WantRange(t, "suspended for", time.Until(time.UnixMilli(until)), 119*time.Second, 2*time.Minute)
		shown := next.Record()
		if text, err := json.Marshal(shown); err != nil || !shown.NoQueueUntil.Equal(time.UnixMilli(until)) || !strings.Contains(string(text), `"noQueueUntil":"2000-`) {
			t.Errorf("the record as JSON is %s: %v", text, err)
		}
		l.joins()
		lab.Elapse(time.Minute)
		lab.Want(t, "joins", l.joins(), 0)
		lab.Want(t, "length of the queue", l.waiting(), 0)
		l.wires[1].Sent()
		l.wires[2].Sent()
		w.Release(next)
		sent := append(l.wires[1].Sent(), l.wires[2].Sent()...)
		wantCount(t, "hand-overs", sent, lab.Call.HandsOver, 0)
		wantCount(t, "releases", sent, lab.Call.Releases, 1)
		next = <-l.got[0]
		behind, wire := w.Client(lab.Config())
		got := w.Queue(behind, "job")
		lab.Elapse(30 * time.Second)
		wantCount(t, "joins of a later waiter during the suspension", wire.Sent(), joins, 0)
		lab.Elapse(40 * time.Second) // long enough for the suspension of the queue to end
		wantCount(t, "joins of a later waiter after the suspension", wire.Sent(), joins, 1)
		renew(w, next)
		w.Release(next)
		handed := <-got
		lab.Want(t, "token of the second hand-over", handed.Token(), next.Token()+1)
		lab.Want(t, "grants", lab.Count(wire.Sent(), lab.Call.Grants), 0)
		w.Release(handed)
	})
}

// Before the holder dies, it writes its own grant, or a renewal if the key was handed to it. So the
// record shows that the holder was live. The clients in the queue may be live too, so the takeover
// must not suspend the queue.
func TestTakeoverFromDeadHolderKeepsQueue(t *testing.T) {
	lab.Each(t, map[string]time.Duration{"after a hand-over": 2 * time.Second, "after its own grant": 0}, func(t *testing.T, w *lab.World, before time.Duration) {
		l := inOrder(t, w, 3, lab.Config())
		dies, rest := l.wire, l.got
		if before > 0 {
			w.Release(l.lock)
			<-l.got[0]
			lab.Elapse(before)
			dies, rest = l.wires[0], l.got[1:]
		}
		dies.SetFault(lab.Cut)
		lab.Elapse(25 * time.Second)
		if w.Item("job")["lastTakeover"] == nil || w.Item("job")["noQueueUntil"] != nil {
			t.Errorf("%v", w.Item("job"))
		}
		lab.Want(t, "length of the queue", l.waiting(), len(rest)-1)
		l.got = rest
		l.releaseAll()
	})
}

func TestQueueSuspensionOfMoreThanTwoMinutesIsIgnored(t *testing.T) {
	type row struct {
		ahead time.Duration
		joins int
	}
	lab.Each(t, map[string]row{
		"longer than six leases":  {3 * time.Minute, 1},
		"shorter than six leases": {time.Minute, 0},
		"in the past":             {-time.Second, 1},
	}, func(t *testing.T, w *lab.World, tc row) {
		_, wire, lock := w.Holding(lab.Config())
		w.Suspend("job", tc.ahead)
		c, waits := w.Client(lab.Config(), lab.Chance(func() float64 { return 0.5 })) // so that each pause is as long as the mean
		got := w.Queue(c, "job")
		lab.Elapse(time.Second)
		wantCount(t, "joins", waits.Sent(), joins, tc.joins)
		lab.Elapse(20 * time.Second)
		waits.Sent()
		lab.Elapse(20 * time.Second)
		if tc.joins == 0 { // while the queue is suspended, a client reads every half second (PollMax)
			wantCount(t, "reads in twenty seconds", waits.Sent(), lab.Call.Reads, 40)
		}
		renew(w, lock)
		wire.Sent()
		w.Release(lock)
		wantCount(t, "hand-overs", wire.Sent(), lab.Call.HandsOver, tc.joins)
		w.Release(<-got)
	})
}

// A takeover can suspend the queue. A client that has not read the record since then can still add
// itself to the queue by mistake. The holder's release must not hand the key to that client.
func TestReleaseDoesNotHandOverKeyWhileQueueIsSuspended(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		l := inOrder(t, w, 1, lab.Config())
		w.Suspend("job", time.Minute)
		renew(w, l.lock)
		l.wire.Sent()
		w.Release(l.lock)
		sent := l.wire.Sent()
		wantCount(t, "hand-overs", sent, lab.Call.HandsOver, 0)
		wantCount(t, "releases", sent, lab.Call.Releases, 1)
		next := <-l.got[0]
		l.wantWaiting(0)
		// A client that has just handed the key over knows that the key is held, so its next Acquire
		// joins the queue immediately. Here the holder has released the key without a hand-over, so
		// its next Acquire must not join.
		again := w.Queue(l.holder, "job")
		wantCount(t, "joins of the releaser", l.wire.Sent(), joins, 0)
		w.Release(next)
		w.Release(<-again)
	})
}

// While the queue is suspended, the waiters of other processes poll, and the record does not show
// them. To give them a chance, a client frees the key after sixteen hand-overs in a row between its
// own goroutines. It does the same in a layout without a queue.
func TestClientReleasesKeyAfter16HandOversIfQueueIsSuspended(t *testing.T) {
	oneClient(t, func(t *testing.T, w *lab.World, c *leasehold.Client, wire *lab.Wire) {
		wire.SetFault(lab.Far(roundTrip))
		first := w.Acquire(c, "job")
		w.Suspend("job", time.Minute)
		renew(w, first)
		ctx, stop := context.WithCancel(t.Context())
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				for ctx.Err() == nil {
					if lock, err := c.Acquire(ctx, "job"); err == nil {
						time.Sleep(10 * time.Millisecond)
						w.Release(lock)
					}
				}
			})
		}
		w.Release(first)
		lab.Elapse(time.Second)
		wire.Sent()
		lab.Elapse(20 * time.Second)
		row, rows := 0, 0 // number of hand-overs since the last release, and number of releases
		for _, call := range wire.Sent() {
			switch {
			case call.HandsOver():
				row++
			case call.Releases():
				if rows++; rows > 1 && row != 16 {
					t.Errorf("%d hand-overs in a row", row)
				}
				row = 0
			}
		}
		if rows < 20 {
			t.Errorf("%d rows of hand-overs", rows)
		}
		stop()
		all.Wait()
		lab.Elapse(time.Second)
	})
}

func TestReleaseWithNewDataHandsOverKeyInOneWrite(t *testing.T) {
	lab.Each(t, map[string]lab.Fault{"answered": nil, "reply lost": lab.Once(lab.Call.HandsOver, lab.LoseReply)}, func(t *testing.T, w *lab.World, fault lab.Fault) {
		l := inOrder(t, w, 2, lab.Config())
		l.wire.Sent()
		l.wire.SetFault(fault)
		w.Release(l.lock, leasehold.WithData([]byte("done so far")))
		sent := l.wire.Sent()
		if n := lab.Count(sent, lab.Call.HandsOver); n == 0 || lab.Count(sent, lab.Call.Releases) > 0 {
			t.Errorf("%d hand-overs: %v", n, lab.Ops(sent))
		}
		next := <-l.got[0]
		lab.Want(t, "data", string(next.Record().Data), "done so far")
		lab.Want(t, "token", next.Token(), l.lock.Token()+1)
		w.Release(next)
		w.Release(<-l.got[1])
	})
}

// The holder tries to hand the key to a waiter that has left the queue. DynamoDB rejects the
// hand-over, and the client cannot decode the record in the reply. The record may still contain the
// holder's grant, so the holder must then release the key.
func TestReleaseSucceedsIfHandOverFindsDamagedRecord(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		l := inOrder(t, w, 1, lab.Config())
		l.leave[0]()
		<-l.got[0]
		lab.Elapse(time.Second)
		l.wire.SetFault(lab.Once(lab.Call.HandsOver, func(*lab.Request) (*http.Response, error) {
			w.Update("job", map[string]types.AttributeValue{"leaseDuration": lab.Str("soon")})
			return nil, lab.ErrReset
		}))
		lab.WantErr(t, "release", l.lock.Release(t.Context()), nil)
		w.WantReleased("job")
	})
}
