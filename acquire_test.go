package leasehold_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/layout"
	"github.com/leasehold-go/leasehold/table"
)

func TestAnUncontendedLockCostsTwoWritesAndNoRead(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.Config())
		wire.Meter = &lab.Meter{}
		for i := range 3 { // a new record, and a kept one
			w.Release(w.Acquire(c, "job"))
			if n := len(wire.Sent()); n != 2 {
				t.Errorf("round %d: %d requests", i, n)
			}
			if used := wire.Meter.Reset(); used != (lab.Units{Write: 2}) {
				t.Errorf("round %d: used %+v", i, used)
			}
		}
	})
}

func TestAGrantWhoseReplyIsLostIsRecognised(t *testing.T) { // all five: an unsettled attempt, or a wait for one's own lease
	for name, fault := range map[string]lab.Fault{
		"reset after the write": lab.LoseReply,
		"a server error after the write": func(r *lab.Request) (*http.Response, error) {
			_, _ = r.Send()
			return lab.Refusal(500, "InternalServerError"), nil
		},
		"delivered twice, the second reply arrives": func(r *lab.Request) (*http.Response, error) {
			_, _ = r.Send()
			return r.Send()
		},
	} {
		t.Run(name, func(t *testing.T) {
			lab.InBubble(t, func(t *testing.T, w *lab.World) {
				c, wire := w.Client(lab.Config())
				wire.SetFault(lab.Once(lab.Call.Grants, fault))
				began := time.Now()
				lock, err := c.TryAcquire(t.Context(), "job")
				if err != nil {
					t.Fatal(err)
				}
				if took := time.Since(began); took > time.Second {
					t.Errorf("took %v", took)
				}
				if lock.Record().Version != lab.Text(w.Item("job"), "recordVersionNumber") || lock.Token() != lock.Record().Token {
					t.Error("the holder does not hold what the record shows")
				}
				w.Release(lock)
			})
		})
	}
}

func TestAnUnsettledAttemptIsTakenOverAtOnceByItsOwnClient(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.Config())
		wire.SetFault(func(r *lab.Request) (*http.Response, error) {
			if r.Grants() {
				_, _ = r.Send()
			}
			return lab.Cut(r)
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := c.Acquire(ctx, "job"); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		lab.Elapse(10 * time.Second) // its undoing did not get through either
		if lab.Text(w.Item("job"), "isReleased") == "1" {
			t.Fatal("no unsettled attempt is there to be taken over")
		}
		wire.SetFault(nil)
		lock, err := c.TryAcquire(t.Context(), "job")
		if err != nil {
			t.Fatal(err)
		}
		if _, took := lock.TookOver(); took {
			t.Error("its own attempt is reported as a dead holder")
		}
		w.Release(lock)
	})
}

func TestNobodyElsesAttemptIsTakenForOnesOwn(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		a, _ := w.Client(lab.Config())
		b, wire := w.Client(lab.Config())
		lock := w.Acquire(a, "job")
		wire.SetFault(lab.Once(lab.Call.Grants, lab.LoseReply)) // it failed, unseen
		if _, err := b.TryAcquire(t.Context(), "job"); !errors.Is(err, leasehold.ErrHeld) {
			t.Errorf("error %v", err)
		}
		w.Release(lock)
	})
}

func TestAWaiterPausesBetweenLooks(t *testing.T) { // dynamo-dlm never sleeps
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		a, _ := w.Client(lab.Config())
		lock := w.Acquire(a, "job")
		lab.Elapse(time.Minute) // an old grant is looked at seldom
		b, wire := w.Client(lab.Config())
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, _ = b.Acquire(ctx, "job")
		if n := len(wire.Sent()); n < 60 || n > 350 {
			t.Errorf("%d looks in a minute: one in half a second, at the most often and on average, is wanted", n)
		}
		w.Release(lock)
	})
}

func TestARecordThatVanishesWhileItIsWatchedIsFree(t *testing.T) { // dynamolock: a nil dereference
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		a, wire := w.Client(lab.Config())
		dead := w.Acquire(a, "job")
		wire.SetFault(lab.Cut)
		b, _ := w.Client(lab.Config())
		granted := make(chan *leasehold.Lock)
		go func() { granted <- w.Acquire(b, "job") }()
		lab.Elapse(5 * time.Second)
		w.Delete("job")
		began := time.Now()
		lock := <-granted
		if took := time.Since(began); took > time.Second {
			t.Errorf("granted %v after the record vanished", took)
		}
		w.Release(lock)
		_ = dead.Release(t.Context())
	})
}

func TestAReleasedLockIsGrantedInOneWrite(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		a, _ := w.Client(lab.Config())
		w.Release(w.Acquire(a, "job"))
		b, wire := w.Client(lab.Config())
		lock := w.Acquire(b, "job")
		defer w.Release(lock)
		if sent := wire.Sent(); len(sent) != 1 || !sent[0].Grants() {
			t.Fatalf("sent %v", sent)
		}
	})
}

func TestTokensGrowByOnePerGrantAndStartFromTheClock(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, _ := w.Client(lab.Config())
		now := time.Now().UnixMicro()
		for i := range int64(3) {
			lock := w.Acquire(c, "job")
			if lock.Token() != now+1+i {
				t.Errorf("token %d, want %d", lock.Token(), now+1+i)
			}
			w.Release(lock)
		}
	})
}

func TestAHeldLockIsRefusedAtOnceWithItsHolder(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		a, _ := w.Client(leasehold.Config{Table: "locks", Owner: "web-7/812", Logger: lab.Config().Logger})
		lock := w.Acquire(a, "nightly-report")
		defer w.Release(lock)
		b, wire := w.Client(lab.Config())
		_, err := b.TryAcquire(t.Context(), "nightly-report")
		var held *leasehold.HeldError
		if !errors.As(err, &held) || !errors.Is(err, leasehold.ErrHeld) {
			t.Fatalf("error %v", err)
		}
		if since := time.Since(held.Holder.GrantedAt); since < 0 || since > time.Second {
			t.Errorf("granted %v ago", since)
		}
		if held.Holder.Token != lock.Token() || held.Holder.Owner != lock.Record().Owner || held.Observation.Version != lock.Record().Version {
			t.Errorf("holder %+v", held.Holder)
		}
		if n := len(wire.Sent()); n != 1 {
			t.Errorf("%d requests", n)
		}
		if s := err.Error(); !strings.Contains(s, "nightly-report is held by web-7/812/") || !strings.Contains(s, "(token ") {
			t.Errorf("message %q", s)
		}
	})
}

func TestAWaiterIsGrantedWithinOnePollOfTheRelease(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		a, _ := w.Client(lab.Config())
		b, wire := w.Client(lab.Config())
		lock := w.Acquire(a, "job")
		granted := make(chan time.Time)
		go func() {
			next := w.Acquire(b, "job")
			granted <- time.Now()
			w.Release(next)
		}()
		lab.Elapse(7 * time.Second)
		released := time.Now()
		w.Release(lock)
		if late := (<-granted).Sub(released); late > time.Second {
			t.Errorf("granted %v after the release", late)
		}
		for i, c := range wire.Sent()[1:] {
			if i > 0 && c.Grants() {
				break // after the release was seen
			}
			if !c.Grants() && c.Op != "GetItem" && !c.Releases() {
				t.Errorf("a waiter sent %s", c.Op)
			}
		}
		synctest.Wait()
	})
}

func TestAWaiterWhoseContextEndsReturnsAtOnceAndLeavesNothing(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		a, _ := w.Client(lab.Config())
		b, _ := w.Client(lab.Config())
		lock := w.Acquire(a, "job")
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		began := time.Now()
		_, err := b.Acquire(ctx, "job")
		if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, leasehold.ErrHeld) {
			t.Errorf("error %v", err)
		}
		if late := time.Since(began) - 3*time.Second; late > 10*time.Millisecond {
			t.Errorf("returned %v late", late)
		}
		synctest.Wait()
		before := w.Item("job")
		w.Release(lock)
		lab.Elapse(time.Minute)
		if lab.Text(before, "ownerName") != lab.Text(w.Item("job"), "ownerName") || lab.Text(w.Item("job"), "isReleased") != "1" {
			t.Errorf("the record shows %v", w.Item("job"))
		}
		if s := b.Stats(); s.Waiting != 0 {
			t.Errorf("stats %+v", s)
		}
	})
}

func TestAGrantThatComesAfterItsCallerLeftIsUndone(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.Config())
		wire.SetFault(lab.Once(lab.Call.Grants, lab.Slow(time.Second)))
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		began := time.Now()
		if _, err := c.Acquire(ctx, "job"); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("error %v", err)
		}
		if took := time.Since(began); took > 110*time.Millisecond {
			t.Errorf("returned after %v", took)
		}
		lab.Elapse(5 * time.Second)
		if lab.Text(w.Item("job"), "isReleased") != "1" {
			t.Errorf("left behind %v", w.Item("job"))
		}
	})
}

func TestAnEndedContextSendsNothing(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.Config())
		lock := w.Acquire(c, "held", leasehold.WithoutRenewal())
		defer w.Release(lock)
		ctx, cancel := context.WithCancelCause(t.Context())
		why := errors.New("shutting down")
		cancel(why)
		wire.Sent()
		for name, do := range map[string]func() error{
			"Acquire": func() error { _, err := c.Acquire(ctx, "job"); return err },
			"Renew":   func() error { return lock.Renew(ctx) },
			"Break":   func() error { return c.Break(ctx, lock.Record()) },
		} {
			if err := do(); !errors.Is(err, why) || errors.Is(err, leasehold.ErrUnknownOutcome) {
				t.Errorf("%s: %v", name, err)
			}
			synctest.Wait()
			if n := len(wire.Sent()); n != 0 {
				t.Errorf("%s: %d requests", name, n)
			}
		}
	})
}

func TestADeadHoldersLockIsTakenOverOneLeaseAfterItsLastRenewalWasSeen(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		a, wire := w.Client(lab.Config())
		b, _ := w.Client(lab.Config())
		dead := w.Acquire(a, "job")
		last := dead.Record()
		wire.SetFault(lab.Cut)
		began := time.Now()
		lock := w.Acquire(b, "job")
		defer w.Release(lock)
		if took := time.Since(began); took < 20*time.Second || took > 20*time.Second+50*time.Millisecond {
			t.Errorf("taken over after %v", took)
		}
		if r, ok := lock.TookOver(); !ok || r.Owner != last.Owner || r.Token != last.Token {
			t.Errorf("took over %+v, %v", r, ok)
		}
		if lock.Token() != last.Token+1 {
			t.Errorf("token %d after %d", lock.Token(), last.Token)
		}
		if err := dead.Err(); !errors.Is(err, leasehold.ErrLost) {
			t.Errorf("the dead holder's error: %v", err)
		}
		_ = dead.Release(t.Context())
	})
}

func TestATryTakesOverWhatItsClientWatchedForALease(t *testing.T) { // others never do: their try-lock starts anew each time
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		a, wire := w.Client(lab.Config())
		b, _ := w.Client(lab.Config())
		dead := w.Acquire(a, "job")
		wire.SetFault(lab.Cut)
		if _, err := b.TryAcquire(t.Context(), "job"); !errors.Is(err, leasehold.ErrHeld) {
			t.Fatalf("first try: %v", err)
		}
		lab.Elapse(20*time.Second - time.Millisecond)
		began := time.Now()
		if _, err := b.TryAcquire(t.Context(), "job"); !errors.Is(err, leasehold.ErrHeld) || time.Since(began) != 0 {
			t.Fatalf("a moment before the lease ends: %v after %v", err, time.Since(began))
		}
		lab.Elapse(time.Millisecond)
		lock, err := b.TryAcquire(t.Context(), "job")
		if err != nil {
			t.Fatalf("after the lease: %v", err)
		}
		w.Release(lock)
		_ = dead.Release(t.Context())
	})
}

func TestARenewedLockIsNeverTakenOver(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		a, _ := w.Client(lab.Config())
		b, _ := w.Client(lab.Config())
		lock := w.Acquire(a, "job")
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		defer cancel()
		if _, err := b.Acquire(ctx, "job"); !errors.Is(err, leasehold.ErrHeld) {
			t.Errorf("error %v", err)
		}
		if err := lock.Err(); err != nil {
			t.Errorf("the holder: %v", err)
		}
		w.Release(lock)
	})
}

func TestAnObservationOutlivesItsProcess(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		a, wire := w.Client(lab.Config())
		dead := w.Acquire(a, "job")
		wire.SetFault(lab.Cut)
		first, _ := w.Client(lab.Config())
		_, err := first.TryAcquire(t.Context(), "job")
		var held *leasehold.HeldError
		if !errors.As(err, &held) {
			t.Fatal(err)
		}
		b, err := json.Marshal(first.Observations())
		if err != nil {
			t.Fatal(err)
		}
		var seen []leasehold.Observation
		if err := json.Unmarshal(b, &seen); err != nil {
			t.Fatal(err)
		}
		for _, tc := range []struct {
			name string
			ago  time.Duration
			want error
		}{
			{"a lease ago by the boot clock", 20 * time.Second, nil},
			{"just now", 0, leasehold.ErrHeld},
		} {
			second, _ := w.Client(lab.Config())
			if err := second.ImportObservations(0, leasehold.BootObservation(second, seen[0], tc.ago)); err != nil {
				t.Fatal(err)
			}
			lock, err := second.TryAcquire(t.Context(), "job")
			if !errors.Is(err, tc.want) {
				t.Errorf("%s: %v", tc.name, err)
			}
			if lock != nil {
				w.Release(lock)
				w.Update("job", map[string]types.AttributeValue{"isReleased": nil})
			}
		}
		_ = dead.Release(t.Context())
	})
}

func TestAnObservationOfAnotherHostIsMadeYoungerByTheSkew(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		a, wire := w.Client(lab.Config())
		dead := w.Acquire(a, "job")
		wire.SetFault(lab.Cut)
		o := leasehold.Observation{
			Key: leasehold.Key{Partition: "job"}, Version: dead.Record().Version, Lease: 20 * time.Second,
			Since: time.Now().Add(-21 * time.Second),
		}
		for _, tc := range []struct {
			skew time.Duration
			want error
		}{{0, leasehold.ErrHeld}, {2 * time.Second, leasehold.ErrHeld}, {time.Second, nil}} {
			b, _ := w.Client(lab.Config())
			if err := b.ImportObservations(tc.skew, o); err != nil {
				t.Fatal(err)
			}
			lock, err := b.TryAcquire(t.Context(), "job")
			if !errors.Is(err, tc.want) {
				t.Errorf("skew %v: %v", tc.skew, err)
			}
			if lock != nil {
				w.Release(lock)
			}
		}
		_ = dead.Release(t.Context())
	})
}

func TestIfExistsAcquiresOnlyARecordThatIsThere(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, _ := w.Client(lab.Config())
		if _, err := c.Acquire(t.Context(), "job", leasehold.IfExists()); !errors.Is(err, leasehold.ErrNotFound) {
			t.Errorf("error %v", err)
		}
		w.Release(w.Acquire(c, "job"))
		w.Release(w.Acquire(c, "job", leasehold.IfExists()))
	})
}

func TestDataAndAttributesSurviveUnlessTheyAreReplaced(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, _ := w.Client(lab.Config())
		w.Release(w.Acquire(c, "job", leasehold.WithInitialData([]byte("one")),
			leasehold.WithAttributes(map[string]types.AttributeValue{"a": lab.Str("1"), "b": lab.Str("2")})))
		lock := w.Acquire(c, "job", leasehold.WithInitialData([]byte("two")))
		if string(lock.Data()) != "one" || len(lock.Record().Attributes) != 2 {
			t.Fatalf("record %+v", lock.Record())
		}
		if err := lock.Renew(t.Context(), leasehold.WithData([]byte("three")),
			leasehold.WithAttributes(map[string]types.AttributeValue{"a": nil, "c": lab.Str("3")})); err != nil {
			t.Fatal(err)
		}
		if r := lock.Record(); string(r.Data) != "three" || r.Attributes["a"] != nil || r.Attributes["c"] == nil {
			t.Fatalf("record %+v", r)
		}
		w.Release(lock, leasehold.WithData([]byte("four")))
		lock = w.Acquire(c, "job", leasehold.WithAttributes(map[string]types.AttributeValue{"b": nil, "c": nil, "d": lab.Str("4")}))
		if r := lock.Record(); string(r.Data) != "four" || len(r.Attributes) != 1 || r.Attributes["d"] == nil {
			t.Fatalf("record %+v", r)
		}
		w.Release(lock, leasehold.WithData(nil), leasehold.WithAttributes(map[string]types.AttributeValue{"d": nil}))
		if item := w.Item("job"); item["data"] != nil || item["d"] != nil {
			t.Errorf("the record shows %v", item)
		}
	})
}

func TestADamagedRecordIsNeverGranted(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, _ := w.Client(lab.Config())
		for name, change := range map[string]map[string]types.AttributeValue{
			"isReleased of a caller": {"isReleased": lab.Str("no")},
			"no owner":               {"ownerName": nil},
			"no version":             {"recordVersionNumber": nil},
			"no lease":               {"leaseDuration": nil},
			"lease of another type":  {"leaseDuration": lab.Num("20000")},
			"token of another type":  {"fencingToken": lab.Str("1"), "isReleased": lab.Str("1")},
			"token below zero":       {"fencingToken": lab.Num("-1"), "isReleased": lab.Str("1")},
			"token without a next":   {"fencingToken": lab.Num("9007199254740991"), "isReleased": lab.Str("1")},
			"another kind":           {"kind": lab.Str("rw"), "isReleased": lab.Str("1")},
			"our owner, no grant":    {"grantId": nil},
		} {
			w.Release(w.Acquire(c, "job"))
			w.Update("job", map[string]types.AttributeValue{"isReleased": nil})
			w.Update("job", change)
			before := w.Item("job")
			_, err := c.TryAcquire(t.Context(), "job")
			var bad *leasehold.RecordError
			if !errors.As(err, &bad) || bad.Key.Partition != "job" {
				t.Errorf("%s: %v", name, err)
			}
			if after := w.Item("job"); len(after) != len(before) {
				t.Errorf("%s: overwritten with %v", name, after)
			}
			w.Delete("job")
		}
	})
}

func TestAForeignHolderWithACopiedTokenIsWaitedForLikeAnyOther(t *testing.T) {
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
		if took := time.Since(began); took < 8*time.Second-time.Millisecond || took > 9*time.Second {
			t.Errorf("taken over after %v", took)
		}
	})
}

func TestAGrantThatCannotBeReadIsUndone(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, _ := w.Client(lab.Config())
		w.Release(w.Acquire(c, "job"))
		w.Update("job", map[string]types.AttributeValue{"data": lab.Str("text")})
		if _, err := c.Acquire(t.Context(), "job"); !errors.Is(err, leasehold.ErrBadRecord) {
			t.Fatalf("error %v", err)
		}
		lab.Elapse(5 * time.Second)
		if lab.Text(w.Item("job"), "isReleased") != "1" {
			t.Errorf("left held: %v", w.Item("job"))
		}
	})
}

func TestAnAcquireThatFailsLeavesNothing(t *testing.T) {
	for name, opts := range map[string][]leasehold.AcquireOption{
		"with renewal":    nil,
		"without renewal": {leasehold.WithoutRenewal()},
	} {
		t.Run(name, func(t *testing.T) {
			lab.InBubble(t, func(t *testing.T, w *lab.World) {
				c, wire := w.Client(lab.Config())
				wire.SetFault(func(r *lab.Request) (*http.Response, error) {
					switch {
					case !r.Grants():
						return r.Send()
					case w.Item("job") == nil:
						return lab.LoseReply(r)
					}
					return lab.Refusal(400, "AccessDeniedException"), nil
				})
				var op *leasehold.OpError
				if _, err := c.Acquire(t.Context(), "job", opts...); !errors.As(err, &op) {
					t.Fatalf("error %v", err)
				}
				synctest.Wait()
				if lab.Text(w.Item("job"), "isReleased") != "1" {
					t.Errorf("left behind %v", w.Item("job"))
				}
			})
		})
	}
}

func TestAnAttemptThatLandsAfterTheReleaseBlocksItsClientNotAtAll(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.Config())
		w.Release(w.Acquire(c, "job"))
		var late func() (*http.Response, error)
		wire.SetFault(lab.Once(lab.Call.Grants, func(r *lab.Request) (*http.Response, error) {
			late = r.Send
			return nil, lab.ErrReset
		}))
		w.Release(w.Acquire(c, "job"))
		_, _ = late()
		if lab.Text(w.Item("job"), "isReleased") == "1" {
			t.Fatal("the delayed attempt did not land")
		}
		began := time.Now()
		w.Release(w.Acquire(c, "job"))
		if took := time.Since(began); took > time.Second {
			t.Errorf("waited %v for a grant of its own that nobody believes in", took)
		}
	})
}

func TestATakeoverDeliveredTwiceSaysWhomItTookOver(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		a, wire := w.Client(lab.Config())
		b, bwire := w.Client(lab.Config())
		dead := w.Acquire(a, "job")
		wire.SetFault(lab.Cut)
		n := 0
		bwire.SetFault(func(r *lab.Request) (*http.Response, error) {
			if r.Grants() {
				n++
				if n == 2 {
					_, _ = r.Send()
				}
			}
			return r.Send()
		})
		lock := w.Acquire(b, "job")
		if r, ok := lock.TookOver(); !ok || r.Token != dead.Token() {
			t.Errorf("took over %+v %v", r, ok)
		}
		w.Release(lock)
		_ = dead.Release(t.Context())
	})
}

func TestATakeoverWhoseReplyWasLostSaysWhomItTookOver(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		a, wire := w.Client(lab.Config())
		b, bwire := w.Client(lab.Config())
		dead := w.Acquire(a, "job")
		wire.SetFault(lab.Cut)
		if _, err := b.TryAcquire(t.Context(), "job"); !errors.Is(err, leasehold.ErrHeld) {
			t.Fatal(err)
		}
		lab.Elapse(20 * time.Second)
		bwire.SetFault(lab.Once(lab.Call.Grants, lab.LoseReply))
		lock := w.Acquire(b, "job")
		if r, ok := lock.TookOver(); !ok || r.Token != dead.Token() {
			t.Errorf("took over %+v, %v", r, ok)
		}
		w.Release(lock)
		_ = dead.Release(t.Context())
	})
}

func TestATryGivesUpBehindACallThatHearsNothing(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.Config())
		wire.SetFault(lab.Cut)
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		go func() { _, _ = c.Acquire(ctx, "job") }()
		synctest.Wait()
		began := time.Now()
		_, err := c.TryAcquire(ctx, "job")
		if took := time.Since(began); err == nil || took > 15*time.Second {
			t.Errorf("error %v after %v", err, took)
		}
		cancel()
		lab.Elapse(10 * time.Second)
	})
}

func TestBadInputIsAnErrorBeforeAnythingIsSent(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.Config())
		acquire := func(key string, opts ...leasehold.AcquireOption) func() error {
			return func() error {
				lock, err := c.Acquire(t.Context(), key, opts...)
				if lock != nil {
					_ = lock.Release(t.Context())
				}
				return err
			}
		}
		list := func(opts ...leasehold.ListOption) func() error {
			return func() error {
				for _, err := range c.List(t.Context(), opts...) {
					return err
				}
				return nil
			}
		}
		for name, do := range map[string]func() error{
			"no key":               acquire(""),
			"a key too long":       acquire(strings.Repeat("k", 2049)),
			"a key not UTF-8":      acquire("a\xff"),
			"a sort key":           acquire("a", leasehold.WithSortKey("b")),
			"a lease too short":    acquire("a", leasehold.WithLease(time.Second-1)),
			"a negative lease":     acquire("a", leasehold.WithLease(-time.Second)),
			"a reserved attribute": acquire("a", leasehold.WithAttributes(map[string]types.AttributeValue{"isReleased": lab.Str("1")})),
			"a nameless attribute": acquire("a", leasehold.WithAttributes(map[string]types.AttributeValue{"": lab.Str("1")})),
			"too much data":        acquire("a", leasehold.WithData(make([]byte, 400<<10))),
			"a warning of nothing": acquire("a", leasehold.WithExpiryWarning(time.Second, nil)),
			"a warning too late":   acquire("a", leasehold.WithExpiryWarning(-time.Second, func(*leasehold.Lock) {})),
			"no function":          func() error { return c.Do(t.Context(), "a", nil) },
			"get no key":           func() error { _, err := c.Get(t.Context(), ""); return err },
			"break nothing":        func() error { return c.Break(t.Context(), leasehold.Record{Key: leasehold.Key{Partition: "a"}}) },
			"list no partition":    list(leasehold.ListPartition("")),
			"list by two":          list(leasehold.ListPartition("a"), leasehold.ListPrefix("b")),
			"list after no key":    list(leasehold.ListAfter(leasehold.Key{})),
		} {
			err := do()
			synctest.Wait()
			if n := len(wire.Sent()); err == nil || n != 0 {
				t.Errorf("%s: error %v, %d requests", name, err, n)
			}
		}
	})
}

func TestAHeldRecordMayNotBeCollectedWhateverTheTTLIsCalledHere(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		usual, _ := w.Client(lab.Config())
		for _, name := range []string{"-", "ttl"} {
			w.Release(w.Acquire(usual, "job"))
			if w.Item("job")["expiresAt"] == nil {
				t.Fatal("a released record is kept for ever")
			}
			cfg := lab.Config()
			cfg.Layout = layout.Native{TTL: name}
			c, _ := w.Client(cfg)
			lock := w.Acquire(c, "job")
			if v := w.Item("job")["expiresAt"]; v != nil {
				t.Errorf("TTL %q: held, and to be collected at %v", name, deref(v))
			}
			w.Release(lock)
		}
	})
}

func TestALateDuplicateOfAGrantDoesNotGrantAgain(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.Config())
		var duplicate func() (*http.Response, error)
		wire.SetFault(func(r *lab.Request) (*http.Response, error) {
			if r.Grants() {
				duplicate = r.Send
			}
			return r.Send()
		})
		lock := w.Acquire(c, "job")
		w.Release(lock)
		before := w.Item("job")
		if _, err := duplicate(); err != nil {
			t.Fatal(err)
		}
		if after := w.Item("job"); lab.Text(after, "isReleased") != "1" || lab.Text(after, "recordVersionNumber") != lab.Text(before, "recordVersionNumber") {
			t.Errorf("the record shows %v", after)
		}
	})
}

func TestARecordThatAPeerReleasedIsGrantedWithATokenFromTheClock(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		w.Put(map[string]types.AttributeValue{
			"key": lab.Str("job"), "ownerName": lab.Str("java"), "leaseDuration": lab.Str("20000"), "recordVersionNumber": lab.Str("v"), "isReleased": lab.Str("1"),
		})
		c, wire := w.Client(lab.Config())
		now := time.Now().UnixMicro()
		lock := w.Acquire(c, "job")
		if n := len(wire.Sent()); lock.Token() != now+1 || n != 1 {
			t.Errorf("token %d, want %d; %d requests", lock.Token(), now+1, n)
		}
		w.Release(lock)
	})
}

func TestHeldSinceYesterdaySaysTheDay(t *testing.T) {
	at := time.Now().Add(-25 * time.Hour)
	err := &leasehold.HeldError{Key: leasehold.Key{Partition: "job"}, Holder: leasehold.Record{Owner: "web", GrantedAt: at}}
	if s := err.Error(); !strings.Contains(s, at.Local().Format(time.DateTime)) {
		t.Errorf("message %q", s)
	}
}

func TestWithoutRenewalAnEndedCallHasCleanedUpWhenItReturns(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.Config())
		wire.SetFault(lab.Once(lab.Call.Grants, lab.Slow(time.Second)))
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		if _, err := c.Acquire(ctx, "job", leasehold.WithoutRenewal()); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v", err)
		}
		if lab.Text(w.Item("job"), "isReleased") != "1" {
			t.Errorf("left behind %v", w.Item("job"))
		}
		wire.SetFault(lab.Cut)
		began := time.Now()
		ctx, cancel = context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		_, _ = c.Acquire(ctx, "job", leasehold.WithoutRenewal())
		if took := time.Since(began); took > 2100*time.Millisecond {
			t.Errorf("returned after %v, past the grace", took)
		}
		wire.SetFault(nil)
		lab.Elapse(10 * time.Second)
	})
}

func TestTheSortKeyTellsTwoLocksApart(t *testing.T) { // awslabs: ("a","bc") equals ("ab","c"); dynamolock ignores it
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		spec := table.Spec{Name: "sorted", Layout: layout.Native{SortKey: "shard", SortValue: "-"}}
		if err := table.Create(t.Context(), w.DB, spec); err != nil {
			t.Fatal(err)
		}
		cfg := lab.Config()
		cfg.Table, cfg.Layout = spec.Name, spec.Layout
		c, _ := w.Client(cfg)
		locks := []*leasehold.Lock{
			w.Acquire(c, "a", leasehold.WithSortKey("bc")),
			w.Acquire(c, "ab", leasehold.WithSortKey("c")),
			w.Acquire(c, "a", leasehold.WithSortKey("d")),
			w.Acquire(c, "a"), // the layout's own value
		}
		if k := locks[3].Key(); k != (leasehold.Key{Partition: "a", Sort: "-"}) {
			t.Errorf("key %+v", k)
		}
		if _, err := c.TryAcquire(t.Context(), "a", leasehold.WithSortKey("bc")); !errors.Is(err, leasehold.ErrHeld) {
			t.Errorf("held: %v", err)
		}
		n := 0
		for r, err := range c.List(t.Context(), leasehold.ListPartition("a")) {
			if err != nil || r.Key.Partition != "a" {
				t.Errorf("listed %+v, %v", r, err)
			}
			n++
		}
		if n != 3 {
			t.Errorf("%d records in partition a", n)
		}
		w.Release(locks[0])
		for _, l := range locks[1:] {
			if err := l.Err(); err != nil {
				t.Errorf("%v: %v", l.Key(), err)
			}
			w.Release(l)
		}
	})
}

func TestAnAcquireWhoseReplyIsLostIsGrantedByItsNextRequest(t *testing.T) { // in all five peers it waits out its own lease
	for name, released := range map[string]bool{"a new record": false, "a kept one": true} {
		t.Run(name, func(t *testing.T) {
			lab.InBubble(t, func(t *testing.T, w *lab.World) {
				c, wire := w.Client(lab.Config())
				if released {
					w.Release(w.Acquire(c, "job"))
				}
				wire.Sent()
				wire.SetFault(lab.Once(lab.Call.Grants, lab.LoseReply))
				began := time.Now()
				lock := w.Acquire(c, "job")
				if sent := wire.Sent(); len(sent) != 2 || time.Since(began) > 200*time.Millisecond {
					t.Errorf("sent %v in %v", sent, time.Since(began))
				}
				if lock.Record().Version != lab.Text(w.Item("job"), "recordVersionNumber") {
					t.Error("the client does not hold what the record shows")
				}
				w.Release(lock)
			})
		})
	}
}

func TestAGrantDeliveredTwiceIsOurOwn(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.Config())
		wire.SetFault(lab.Once(lab.Call.Grants, func(r *lab.Request) (*http.Response, error) {
			_, _ = r.Send()
			return r.Send() // refused: it shows the first
		}))
		sent := time.Now()
		lock := w.Acquire(c, "job")
		if n := len(wire.Sent()); n != 1 || !lock.TrustedUntil().Equal(sent.Add(18*time.Second)) {
			t.Errorf("%d requests, trusted until %v", n, lock.TrustedUntil())
		}
		w.Release(lock)
	})
}

func TestAGrantDeliveredTwiceIsReplacedWhenItsReplyComesLate(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.Config())
		wire.SetFault(lab.Once(lab.Call.Grants, func(r *lab.Request) (*http.Response, error) {
			_, _ = r.Send()
			time.Sleep(600 * time.Millisecond)
			return r.Send()
		}))
		began := time.Now()
		lock := w.Acquire(c, "job", leasehold.WithLease(time.Second), leasehold.WithoutRenewal())
		if left := time.Until(lock.TrustedUntil()); left < 800*time.Millisecond {
			t.Errorf("%v of trust left", left)
		}
		if took := time.Since(began); took > 700*time.Millisecond {
			t.Errorf("took %v", took)
		}
		w.Release(lock)
	})
}

func TestAnUnsettledGrantBlocksItsClientNotAtAll(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.Config())
		wire.SetFault(func(r *lab.Request) (*http.Response, error) {
			if r.Grants() && w.Item("job") == nil {
				_, _ = r.Send()
			}
			return lab.Cut(r) // the release that undoes it is lost, too
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := c.Acquire(ctx, "job"); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("error %v", err)
		}
		lab.Elapse(10 * time.Second)
		wire.SetFault(nil)
		began := time.Now()
		lock, err := c.TryAcquire(t.Context(), "job")
		if err != nil {
			t.Fatalf("a grant of its own that nobody believes in: %v", err)
		}
		if took := time.Since(began); took > time.Second {
			t.Errorf("took %v", took)
		}
		if _, ok := lock.TookOver(); ok {
			t.Error("it was nobody's work")
		}
		w.Release(lock)
	})
}

func TestAGrantIsWaitedForNoLongerThanItCouldBeTrusted(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.Config())
		wire.SetFault(lab.Once(lab.Call.Grants, lab.Cut))
		began := time.Now()
		lock := w.Acquire(c, "job", leasehold.WithLease(time.Second))
		if took := time.Since(began); took > 1100*time.Millisecond {
			t.Errorf("took %v", took)
		}
		w.Release(lock)
	})
}

func TestATryInLineIsAnsweredAsSoonAsTheHolderIsKnown(t *testing.T) {
	for name, foreign := range map[string]bool{"here": false, "elsewhere": true} {
		t.Run(name, func(t *testing.T) {
			lab.InBubble(t, func(t *testing.T, w *lab.World) {
				c, wire := w.Client(lab.Config())
				if foreign {
					other, _ := w.Client(lab.Config())
					lock := w.Acquire(other, "job")
					defer w.Release(lock)
				}
				wire.SetFault(lab.Once(lab.Call.Grants, lab.Slow(time.Second)))
				ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
				defer cancel()
				ahead := make(chan struct{})
				go func() {
					defer close(ahead)
					if l, err := c.Acquire(ctx, "job"); err == nil {
						time.Sleep(3 * time.Second)
						w.Release(l)
					}
				}()
				synctest.Wait()
				began := time.Now()
				if _, err := c.TryAcquire(t.Context(), "job"); !errors.Is(err, leasehold.ErrHeld) {
					t.Errorf("error %v", err)
				}
				if took := time.Since(began); took != time.Second {
					t.Errorf("took %v", took)
				}
				<-ahead
			})
		})
	}
}

func TestWhichObservationIsImported(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		a, _ := w.Client(lab.Config())
		lock := w.Acquire(a, "job", leasehold.WithoutRenewal())
		seen := leasehold.Observation{Key: lock.Key(), Version: lock.Record().Version, Lease: 20 * time.Second}
		older := leasehold.Observation{Key: lock.Key(), Version: "older", Lease: 20 * time.Second, Since: time.Now().Add(-time.Hour)}
		b, _ := w.Client(lab.Config())
		if _, err := b.TryAcquire(t.Context(), "job"); !errors.Is(err, leasehold.ErrHeld) {
			t.Fatal(err)
		}
		since := func() time.Duration {
			t.Helper()
			all := b.Observations()
			if len(all) != 1 || all[0].Version != seen.Version {
				t.Fatalf("observations %v", all)
			}
			return time.Since(all[0].Since)
		}
		for _, tc := range []struct {
			name string
			o    leasehold.Observation
			ago  time.Duration
			want time.Duration
		}{
			{"of another version", older, time.Hour, 0},
			{"an older one", seen, 10 * time.Second, 10 * time.Second},
			{"a younger one", seen, 5 * time.Second, 10 * time.Second},
		} {
			tc.o.Since = time.Now().Add(-tc.ago - time.Second)
			if err := b.ImportObservations(time.Second, tc.o); err != nil {
				t.Fatal(err)
			}
			if got := since(); (got - tc.want).Abs() > time.Second {
				t.Errorf("%s: seen %v ago, want %v", tc.name, got, tc.want)
			}
		}
		w.Release(lock)
	})
}

func TestAnObservationOfAnotherBootIsNoOlderThanItsArrivalWithoutASkew(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		a, _ := w.Client(lab.Config())
		lock := w.Acquire(a, "job", leasehold.WithoutRenewal())
		var o leasehold.Observation
		if err := json.Unmarshal([]byte(`{"key":"job","version":"`+lock.Record().Version+
			`","leaseMs":20000,"since":"2000-01-01T00:00:00Z","boot":"another","bootMs":-3600000}`), &o); err != nil {
			t.Fatal(err)
		}
		b, _ := w.Client(lab.Config())
		if err := b.ImportObservations(0, o); err != nil {
			t.Fatal(err)
		}
		if _, err := b.TryAcquire(t.Context(), "job"); !errors.Is(err, leasehold.ErrHeld) {
			t.Errorf("error %v", err)
		}
		w.Release(lock)
	})
}

func TestATryGivesUpWhenItHearsNothing(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.Config())
		wire.SetFault(lab.Cut)
		began := time.Now()
		var op *leasehold.OpError
		if _, err := c.TryAcquire(t.Context(), "job"); !errors.As(err, &op) {
			t.Errorf("error %v", err)
		}
		if took := time.Since(began); took < 10*time.Second || took > 15*time.Second {
			t.Errorf("took %v", took)
		}
		lab.Elapse(10 * time.Second)
	})
}
