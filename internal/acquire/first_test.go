package acquire_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leasehold-go/leasehold/internal/acquire"
	"github.com/leasehold-go/leasehold/internal/core"
	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/internal/protocol"
	"github.com/leasehold-go/leasehold/layout"
)

func TestFreeKeyIsGrantedByOneWrite(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		c := w.client("a")
		found, err := c.One(t.Context(), c.want("job"))
		if err != nil || len(found.Held) != 1 || found.Requests != 1 || found.Local {
			t.Fatalf("%+v, %v", found, err)
		}
		if sent := c.wire.requests(); !slices.Equal(sent, []string{"update"}) || w.owner("job") != "a" {
			t.Errorf("sent %v; held by %q", sent, w.owner("job"))
		}
		if g := c.grants[0]; g.Dead != nil || g.Record.Grant != g.Version {
			t.Errorf("granted %+v", g)
		}
	})
}

func TestDeadHolderIsTakenOverOneLeaseAfterFirstRead(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.client("dead").one("job")
		time.Sleep(time.Hour) // the client reads the record only after this hour, so the hour does not count as observation
		c, began := w.client("b"), time.Now()
		h := c.one("job")
		if waited := time.Since(began); waited != timing.Lease {
			t.Errorf("taken over after %v", waited)
		}
		if dead := h.grant.Dead; dead == nil || name(dead.Owner) != "dead" {
			t.Errorf("it has taken over %+v", dead)
		}
		if !slices.Equal(c.waiting, []string{"dead"}) {
			t.Errorf("waited for %v", c.waiting)
		}
	})
}

func TestDelayBetweenClockReadsOnlyDelaysTakeover(t *testing.T) {
	by := layout.DynamoDLM{NoSlots: true}
	inWorldOf(t, by, func(t *testing.T, w *world) {
		w.client("dead").one("job")
		c := w.client("b")
		c.Observer.Caps = by.Capabilities()
		c.PollMin, c.PollMax = time.Hour, time.Hour // the pauses are so long that the client reads the record only once
		looked := false
		// This clock delays the client by 5 ms when the client first reads the clock after its
		// first request.
		c.Wall = func() time.Time {
			if !looked && len(c.wire.requests()) == 1 {
				looked = true
				time.Sleep(5 * time.Millisecond)
			}
			return time.Now()
		}
		c.one("job")
		writes := slices.DeleteFunc(c.wire.requests(), func(name string) bool { return name != "update" })
		if len(writes) != 2 { // expects two writes: a rejected grant, whose reply shows the holder, and the takeover
			t.Errorf("%v", c.wire.requests())
		}
	})
}

func TestWaiterWithoutPausesSendsReadsInsteadOfGrants(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		h := w.client("a").one("job")
		c, pauses := w.client("b"), 0
		c.Chance = func() float64 {
			if pauses++; pauses < 5 {
				return 0
			}
			return 0.5
		}
		time.AfterFunc(time.Second, h.release)
		c.one("job")
		if n := len(slices.DeleteFunc(c.wire.requests(), func(name string) bool { return name == "get" })); n != 3 { // expects three writes: a rejected grant, a join of the queue, and the successful grant
			t.Errorf("%d writes: %v", n, c.wire.requests())
		}
	})
}

func TestAnsweredGrantResetsPausesBetweenRetries(t *testing.T) {
	eachInWorld(t, map[string]string{"grants have failed": "update", "reads have failed": "get"}, func(t *testing.T, w *world, fails string) {
		h := w.client("a").one("job")
		c, broken := w.client("b"), true
		var failed, repeated time.Time
		c.wire.fate = func(n int, request string, deliver func()) error {
			switch {
			case broken && request == "update" && (fails == "get" && n > 1 || n > 10):
				// The client receives the answer to this request. But a renews its lock before the
				// request arrives.
				broken = false
				h.renew()
			case broken && request == fails && (fails == "update" || n > 1):
				return errThrottled
			case !broken && request == "get" && failed.IsZero():
				failed = time.Now()
				return errReset
			case !failed.IsZero() && repeated.IsZero():
				repeated = time.Now()
			}
			deliver()
			return nil
		}
		_, _ = c.One(w.within(2*timing.Lease), c.want("job"))
		if after := repeated.Sub(failed); failed.IsZero() || after > 1100*time.Millisecond {
			t.Errorf("a read that failed first is repeated after %v: %v", after, c.wire.requests())
		}
	})
}

func TestAnsweredReadResetsPausesBetweenRetries(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.client("a").one("job")
		c, reads := w.client("b"), 0
		var failed, repeated time.Time
		ctx, leave := context.WithTimeout(t.Context(), timing.Lease-time.Second)
		defer leave()
		c.wire.fate = func(_ int, request string, deliver func()) error {
			if request == "get" {
				switch reads++; {
				case reads <= 8:
					return errThrottled
				case reads == 10:
					failed = time.Now()
					return errReset
				case reads == 11:
					repeated = time.Now()
					leave()
				}
			}
			deliver()
			return nil
		}
		_, _ = c.One(ctx, c.want("job"))
		c.left()
		if after := repeated.Sub(failed); failed.IsZero() || repeated.IsZero() || after > 500*time.Millisecond {
			t.Errorf("a read that failed after an answered one is repeated after %v", after)
		}
	})
}

func TestHolderThatRenewsIsNeverTakenOver(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		h := w.client("a").one("job")
		ctx := w.within(3 * timing.Lease)
		renewing := sync.WaitGroup{}
		defer renewing.Wait()
		renewing.Go(func() {
			for ctx.Err() == nil {
				time.Sleep(timing.Lease - time.Second)
				h.renew()
			}
		})
		c := w.client("b")
		_, err := c.One(ctx, c.want("job"))
		if held := (*heldError)(nil); !errors.As(err, &held) || held.holder != "a" || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v", err)
		}
	})
}

func TestNoWaitErrorNamesHolder(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.client("a").one("job")
		c, began := w.client("b"), time.Now()
		_, err := c.One(t.Context(), c.want("job", noWait))
		if held := (*heldError)(nil); !errors.As(err, &held) || held.holder != "a" || held.error != nil || time.Since(began) > 0 {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
	})
}

func TestNoWaitGivesUpAfterTenSecondsWithoutAnswers(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		c, began := w.client("a"), time.Now()
		c.wire.fate = func(int, string, func()) error { return errReset }
		_, err := c.One(t.Context(), c.want("job", noWait))
		if failed := (*failedError)(nil); !errors.As(err, &failed) || !errors.Is(err, errReset) {
			t.Errorf("%v", err)
		}
		if waited := time.Since(began); waited < acquire.TryFor || waited > 2*acquire.TryFor {
			t.Errorf("after %v", waited)
		}
	})
}

func TestNoWaitErrorNamesHolderEvenIfAnswerIsLate(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.client("a").one("job")
		c, began := w.client("b"), time.Now()
		c.wire.fate = func(_ int, _ string, deliver func()) error {
			if time.Since(began) < acquire.TryFor-time.Second {
				return errReset
			}
			time.Sleep(2 * time.Second)
			deliver()
			return nil
		}
		_, err := c.One(t.Context(), c.want("job", noWait))
		if held := (*heldError)(nil); !errors.As(err, &held) || held.holder != "a" || time.Since(began) < acquire.TryFor {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
	})
}

func TestGrantWithoutReplyIsReplacedByNextAttempt(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		c := w.client("a")
		c.wire.fate = func(n int, _ string, deliver func()) error {
			deliver()
			if n == 1 {
				return errReset
			}
			return nil
		}
		began := w.now()
		h := c.one("job")
		if after := h.grant.Sent.Mono - began.Mono; after == 0 || after > time.Second || h.grant.Dead != nil { // the call must return the second attempt, because its trust lasts longer than that of the first
			t.Errorf("after %v: %+v", h.grant.Sent.Mono-began.Mono, h.grant)
		}
		if sent := c.wire.requests(); !slices.Equal(sent, []string{"update", "update"}) {
			t.Errorf("sent %v", sent)
		}
		h.release() // the condition of this release names only the second attempt
		if w.owner("job") != "" {
			t.Error("the first is still there")
		}
	})
}

func TestGrantRequestDeliveredTwiceCountsOnce(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		c := w.client("a")
		c.wire.fate = func(_ int, _ string, deliver func()) error {
			deliver()
			// The client receives only the reply to the second copy of the request. The condition of
			// that copy has failed.
			deliver()
			return nil
		}
		began := w.now()
		if h := c.one("job"); h.grant.Sent != began || len(c.wire.requests()) != 1 {
			t.Errorf("sent %v; trust counts from %v later", c.wire.requests(), h.grant.Sent.Mono-began.Mono)
		}
	})
}

func TestAcquireReplacesItsOwnGrantIfLittleTrustIsLeft(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		c := w.client("a")
		c.wire.fate = func(n int, _ string, deliver func()) error {
			deliver()
			if n == 1 {
				time.Sleep(timing.Trust()/2 + time.Millisecond)
				deliver()
			}
			return nil
		}
		began := w.now()
		if h := c.one("job"); h.grant.Sent == began {
			t.Error("held with less than half of its trust")
		}
	})
}

func TestDeniedGrantRequestEndsAcquire(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		c := w.client("a")
		c.wire.fate = func(int, string, func()) error { return errDenied }
		_, err := c.One(t.Context(), c.want("job"))
		if failed := (*failedError)(nil); !errors.As(err, &failed) || !errors.Is(err, errDenied) || len(c.wire.requests()) != 1 {
			t.Errorf("%v, after %v", err, c.wire.requests())
		}
	})
}

func TestThrottlingIsReportedEachTimeAndRetried(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		c := w.client("a")
		c.wire.fate = failing(errThrottled, func(n int, _ string) bool { return n < 4 })
		c.one("job")
		if c.throttle != 3 || len(c.failing) != 0 {
			t.Errorf("told %d times; failing: %v", c.throttle, c.failing)
		}
	})
}

func TestGrantThatLandsAfterContextEndIsReleased(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		c := w.client("a")
		ctx, cancel := context.WithCancel(t.Context())
		c.wire.fate = before(1, "update", func() {
			cancel() // the caller's context ends while the write is in flight
			time.Sleep(time.Second)
		})
		if _, err := c.One(ctx, c.want("job")); !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
		c.left()
		if len(c.given) != 1 || w.owner("job") != "" {
			t.Errorf("given back: %v; held by %q", c.given, w.owner("job"))
		}
	})
}

func TestLateGrantOfCancelledCallDoesNotBlockSameClient(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		c := w.client("a")
		var late func()
		ctx := w.within(time.Millisecond)
		c.wire.fate = func(n int, _ string, deliver func()) error {
			if n == 1 {
				late = deliver
				<-ctx.Done()
				return errReset
			}
			deliver()
			return nil
		}
		if _, err := c.One(ctx, c.want("job")); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v", err)
		}
		c.left()
		if sent := c.wire.requests(); !slices.Equal(sent, []string{"update", "update"}) {
			t.Errorf("sent %v: no write frees the key", sent)
		}
		late() // the grant arrives only now, after the write that should free the key
		if w.owner("job") != "a" {
			t.Fatal("it is not applied late")
		}
		began := time.Now()
		if h := c.one("job", noWait); time.Since(began) > time.Second || h.grant.Dead != nil {
			t.Errorf("after %v, and it has taken over %+v", time.Since(began), h.grant.Dead)
		}
	})
}

func TestAcquireAnyKeepsGrantIfContextEndsDuringCleanup(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.heldForASecond("a")
		w.client("other").one("b")
		c := w.client("me")
		ctx, leave := context.WithCancel(t.Context())
		c.wire.fate = func(_ int, name string, deliver func()) error {
			deliver()
			if name == "update" && c.hasGrants() { // the call has been granted one key, so this write leaves the queue of the other key
				leave()
				time.Sleep(time.Second)
			}
			return nil
		}
		found, err := c.First(ctx, edited(c.wants("a", "b"), func(want *acquire.Want) { want.Manual = true }))
		if err != nil || len(found.Held) != 1 || len(c.given) > 0 || ctx.Err() == nil {
			t.Errorf("%d held: %v; gave back %v; left %v", len(found.Held), err, c.given, ctx.Err())
		}
	})
}

func TestCloseEndsEveryWait(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.client("a").one("job")
		c := w.client("b")
		time.AfterFunc(time.Second, func() { c.env.BeginClose() })
		var calls sync.WaitGroup
		for _, key := range []string{"first", "second"} { // one call polls the record, the other waits behind it in the local queue
			calls.Go(func() {
				_, err := c.One(t.Context(), c.want("job"))
				if held := (*heldError)(nil); !errors.As(err, &held) || !errors.Is(err, core.ErrClosed) {
					t.Errorf("%s: %v", key, err)
				}
			})
		}
		calls.Wait()
	})
}

func TestIfExistsOptionReturnsErrNotFoundIfRecordIsMissing(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		c := w.client("a")
		if _, err := c.One(t.Context(), c.want("job", ifExists)); !errors.Is(err, errMissing) {
			t.Errorf("%v", err)
		}
	})
}

func TestAcquireAnyGrantsFirstFreeKey(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		other := w.client("other")
		other.one("a")
		w.damage("b")
		c := w.client("me")
		found, err := c.First(t.Context(), c.wants("a", "b", "c", "d"))
		if got := keysOf(found); err != nil || got != "c" {
			t.Fatalf("granted %s: %v", got, err)
		}
		c.left()
		if len(c.failing) != 1 || w.owner("d") != "" {
			t.Errorf("told %v of the damaged one; d is held by %q", c.failing, w.owner("d"))
		}
		if _, err := c.One(t.Context(), c.want("b")); err == nil { // First has passed on its local turn for b, so this call gets an error and does not wait
			t.Error("the damaged one is granted")
		}
		c.one("d")
	})
}

func TestAcquireAnyResolvesUnansweredGrantBeforeNextKey(t *testing.T) {
	eachInWorld(t, map[string]error{"at once": nil, "through throttling": errThrottled}, func(t *testing.T, w *world, then error) {
		c := w.client("me")
		c.wire.fate = func(n int, _ string, deliver func()) error {
			if n == 2 && then != nil {
				return then
			}
			deliver()
			if n == 1 {
				return errReset
			}
			return nil
		}
		found, err := c.First(t.Context(), c.wants("a", "b"))
		if got := keysOf(found); err != nil || got != "a" || w.owner("b") != "" {
			t.Errorf("granted %s: %v; b is held by %q", got, err, w.owner("b"))
		}
	})
}

// underSession grants the key to a client whose session has a lease of an hour. It returns
// the key of the session's row.
func (w *world) underSession(key string) (row string) {
	w.Helper()
	owner, sharing := protocol.NewOwner("sharer"), w.proto.(protocol.Native)
	id := protocol.ClientID(owner)
	at := sharing.SessionKey(id)
	w.write(sharing.Session().Grant(protocol.Grant{
		Key: at, Owner: owner, Version: protocol.NewVersion(), Lease: time.Hour, Now: time.Now(),
	}))
	w.write(w.proto.Grant(protocol.Grant{
		Key: protocol.Key{Partition: key}, Owner: owner, Session: id, Version: protocol.NewVersion(), Lease: timing.Lease, Now: time.Now(),
	}))
	return at.Partition
}

func TestAcquireAnyGrantsOtherKeysIfSessionIsUnreadable(t *testing.T) {
	cases := map[string][]string{"its key first": {"a", "b"}, "its key last": {"b", "a"}}
	eachInWorld(t, cases, func(t *testing.T, w *world, keys []string) {
		w.underSession("a")
		other := w.client("other").one("b")
		c := w.client("me")
		c.wire.fate = func(_ int, name string, deliver func()) error {
			if name == "get" { // every GetItem here reads the session's row, because the two keys are read by BatchGetItem
				time.Sleep(time.Second)
				return errReset
			}
			deliver()
			return nil
		}
		began := time.Now()
		time.AfterFunc(2*time.Second, other.release)
		lab.OK(t, lab.ErrorOf(c.First(t.Context(), c.wants(keys...))))
		if waited := time.Since(began); waited > 5*time.Second {
			t.Errorf("the key that was freed is granted after %v", waited)
		}
	})
}

func TestAcquireAnyDoesNotReportMissingRecordAsDamaged(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.client("other").one("b")
		c := w.client("me")
		_, err := c.First(t.Context(), edited(c.wants("a", "b"), noWait, ifExists))
		if held := (*heldError)(nil); !errors.As(err, &held) || held.key.Partition != "b" || held.error != nil || len(c.failing) > 0 {
			t.Errorf("%v; told of %v", err, c.failing)
		}
	})
}

func TestAcquireAnyNoWaitErrorContainsErrorOfDamagedRecord(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.damage("a")
		w.client("other").one("b")
		c := w.client("me")
		_, err := c.First(t.Context(), edited(c.wants("a", "b"), noWait))
		if held := (*heldError)(nil); !errors.As(err, &held) || held.key.Partition != "b" || !strings.Contains(err.Error(), "damaged a") {
			t.Errorf("%v", err)
		}
	})
}

func TestAcquireAnyReportsKeyOfDamagedSessionOnce(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		row := w.underSession("a")
		c := w.client("me")
		if _, err := c.One(w.within(timing.Lease), c.want("a")); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("%v", err)
		}
		c.left() // the record of a has not changed for a whole lease, so only the session's row shows that its holder is alive
		w.damage(row)
		w.client("other").one("b")
		ctx := w.within(4 * c.PollMax) // four times the longest pause between two reads of a waiter
		if _, err := c.First(ctx, c.wants("a", "b")); !errors.Is(err, context.DeadlineExceeded) || len(c.failing) != 1 {
			t.Errorf("%v; told of %v", err, c.failing)
		}
	})
}

func TestNoWaitErrorNamesKnownHolderDespiteFailedRead(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		other := w.client("other")
		other.one("a")
		other.one("b")
		c, began := w.client("me"), time.Now()
		// The second request is the grant of b. The call repeats that grant only after
		// a batch read of both keys.
		c.wire.fate = failing(errThrottled, func(n int, name string) bool { return n == 2 || name == "batch" })
		_, err := c.First(t.Context(), edited(c.wants("a", "b"), noWait))
		if held := (*heldError)(nil); !errors.As(err, &held) || held.key.Partition != "a" || !slices.Contains(c.wire.requests(), "batch") {
			t.Errorf("after %v and %v: %v", time.Since(began), c.wire.requests(), err)
		}
	})
}

func TestAcquireAnyCountsBatchReadsAsRequests(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.heldForASecond("a")
		w.client("other").one("b")
		c := w.client("me")
		found, err := c.First(t.Context(), c.wants("a", "b"))
		c.left()
		sent := c.wire.requests()
		// The count omits one request: the write that leaves the queue of b after the grant.
		if counted := len(sent) - 1; err != nil || found.Requests != counted || !slices.Contains(sent, "batch") {
			t.Errorf("counted %d of %v: %v", found.Requests, sent, err)
		}
	})
}

func TestThrottledBatchReadIsReportedOnce(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.heldForASecond("a")
		w.client("other").one("b")
		c, batches := w.client("me"), 0
		c.wire.fate = failing(errThrottled, func(_ int, name string) bool {
			if name == "batch" {
				batches++
			}
			return name == "batch" && batches == 1
		})
		if _, err := c.First(t.Context(), c.wants("a", "b")); err != nil || c.throttle != 1 {
			t.Errorf("told %d times: %v", c.throttle, err)
		}
	})
}

func TestAcquireAnyDoesNotReadKeysItWaitsForLocally(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.client("other").one("a")
		c := w.client("me")
		b := c.one("b")
		time.AfterFunc(100*time.Millisecond+time.Nanosecond, b.release)
		lab.OK(t, lab.ErrorOf(c.First(t.Context(), c.wants("a", "b"))))
		if sent := c.wire.requests(); slices.Contains(sent, "batch") || !slices.Contains(sent, "get") {
			t.Errorf("sent %v", sent)
		}
	})
}

func TestAcquireOfDamagedRecordReturnsError(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.damage("job")
		c := w.client("a")
		if _, err := c.One(t.Context(), c.want("job")); err == nil || len(c.grants) > 0 {
			t.Errorf("%v", err)
		}
	})
}

func TestWaitersBehindHolderOfSameClientSendNoRequests(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		c := w.client("a")
		h := c.one("job")
		got := make(chan *holding)
		go func() { got <- c.one("job") }()
		time.Sleep(time.Minute)
		if sent := c.wire.requests(); len(sent) != 1 {
			t.Errorf("sent %v", sent)
		}
		h.release()
		next := <-got
		if next.grant.Record.Token <= h.grant.Record.Token {
			t.Error("the next has no greater token")
		}
	})
}
