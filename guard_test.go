package leasehold_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/internal/machine"
	"github.com/leasehold-go/leasehold/layout"
	"github.com/leasehold-go/leasehold/table"
)

func TestAGuardHoldsWhileItsGrantStands(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, _ := w.Work().Client(lab.Config())
		lock := w.Acquire(c, "job")
		guard := lock.Guards()[0]
		if err := w.Transact(lab.Note("a", "1"), guard); err != nil {
			t.Fatal(err)
		}
		lab.Elapse(time.Minute) // of renewals
		if err := w.Transact(lab.Note("a", "2"), guard); err != nil {
			t.Fatal(err)
		}
		w.Release(lock)
		next := w.Acquire(c, "job")
		err := w.Transact(guard, lab.Note("a", "stale"))
		var lost *leasehold.LostError
		if told := lock.GuardError(err, 0); !errors.As(told, &lost) || !errors.Is(told, leasehold.ErrReleased) {
			t.Errorf("guard: %v", told)
		}
		if err := w.Transact(lab.Note("a", "3"), next.Guards()[0]); err != nil {
			t.Fatal(err)
		}
		w.WantLog("1", "2", "3")
		w.Release(next)
	})
}

func TestAGuardThatFailedEndsTheLock(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, _ := w.Work().Client(lab.Config())
		lock := w.Acquire(c, "job")
		w.Steal("job")
		failed := w.Transact(lab.Note("a", "stale"), lock.Guards()[0])
		err := lock.GuardError(failed, 1)
		var lost *leasehold.LostError
		if !errors.As(err, &lost) || lost.Reason != leasehold.LostReplaced || lost.By == nil || lost.By.Version != "theirs" || !errors.Is(err, failed) {
			t.Fatalf("guard: %v", err)
		}
		if !errors.Is(context.Cause(lock.Context()), leasehold.ErrLost) {
			t.Error("the lock's context goes on")
		}
	})
}

func TestOnlyItsOwnFailedConditionEndsTheLock(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, _ := w.Work().Client(lab.Config())
		lock := w.Acquire(c, "job")
		cancelled := w.Transact(lab.NoteIf("a", "1"), lock.Guards()[0])
		code := aws.String("TransactionConflict")
		conflict := &types.TransactionCanceledException{CancellationReasons: []types.CancellationReason{{}, {Code: code}}}
		for name, tc := range map[string]struct {
			err error
			i   int
		}{
			"success":            {nil, 0},
			"another write's":    {cancelled, 1},
			"a conflict":         {conflict, 1},
			"an index too high":  {cancelled, 2},
			"an index too low":   {cancelled, -1},
			"another error":      {context.DeadlineExceeded, 0},
			"a table not found":  {&types.ResourceNotFoundException{}, 0},
			"a single condition": {&types.ConditionalCheckFailedException{}, 0},
		} {
			if err := lock.GuardError(tc.err, tc.i); !errors.Is(err, tc.err) || errors.Is(err, leasehold.ErrLost) || lock.Err() != nil {
				t.Errorf("%s: %v, lock: %v", name, err, lock.Err())
			}
		}
		w.Release(lock)
	})
}

// commitsIn runs commits and guards in a table of layout l.
func commitsIn(t *testing.T, l layout.Layout) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		w.Work()
		if err := table.Create(t.Context(), w.DB, table.Spec{Name: "layout", Layout: l}); err != nil {
			t.Fatal(err)
		}
		cfg := lab.Config()
		cfg.Table, cfg.Layout = "layout", l
		a, _ := w.Client(cfg)
		b, wire := w.Client(cfg)
		lock := w.Acquire(a, "job")
		guard := lock.Guards()[0]
		lab.Elapse(time.Minute) // of renewals
		if err := lock.Commit(t.Context(), lab.Writes(lab.Note("a", "1"))); err != nil {
			t.Fatalf("commit: %v", err)
		}
		if _, err := lock.Read(t.Context(), nil); err != nil {
			t.Errorf("read: %v", err)
		}
		if err := lock.CommitAndRelease(t.Context(), lab.Writes(lab.Note("a", "2"))); err != nil {
			t.Fatalf("commit and release: %v", err)
		}
		lock = w.Acquire(b, "job")
		if err := w.Transact(guard, lab.Note("a", "stale")); err == nil {
			t.Error("a guard holds beyond its grant")
		}
		wire.SetFault(lab.Script(lab.Delayed(time.Minute), lab.Cut, lab.Cut)) // arrives when the key is another's
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := lock.Commit(ctx, lab.Writes(lab.Note("a", "stale"))); !errors.Is(err, leasehold.ErrUnknownOutcome) {
			t.Errorf("commit: %v", err)
		}
		w.Release(lock)
		lock = w.Acquire(a, "job")
		lab.Elapse(2 * time.Minute)
		w.WantLog("1", "2")
		// Broken, as an operator does it: the next commit finds out.
		if err := b.Break(t.Context(), lock.Record()); err != nil {
			t.Fatal(err)
		}
		if err := lock.Commit(t.Context(), lab.Writes(lab.Note("a", "stale"))); !errors.Is(err, leasehold.ErrLost) {
			t.Errorf("commit after a break: %v", err)
		}
		w.WantLog("1", "2")
	})
}

func TestAReadSeesTheGrantStanding(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Work().Client(lab.Config())
		lock := w.Acquire(c, "job")
		if err := lock.Commit(t.Context(), lab.Writes(lab.Note("a", "1"), lab.Note("c", "2"))); err != nil {
			t.Fatal(err)
		}
		wire.Sent()
		wire.Meter = &lab.Meter{}
		items, err := lock.Read(t.Context(), []types.TransactGetItem{lab.Get("c"), lab.Get("b"), lab.Get("a")})
		if err != nil || len(items) != 3 || lab.Log(items[0])[0] != "2" || items[1] != nil || lab.Log(items[2])[0] != "1" {
			t.Errorf("read %v: %v", items, err)
		}
		if used := wire.Meter.Reset(); len(wire.Sent()) != 1 || used != (lab.Units{Read: 8}) { // two for each item
			t.Errorf("used %+v", used)
		}
		w.Steal("job")
		if _, err := lock.Read(t.Context(), []types.TransactGetItem{lab.Get("a")}); !errors.Is(err, leasehold.ErrLost) {
			t.Errorf("read: %v", err)
		}
		if !errors.Is(context.Cause(lock.Context()), leasehold.ErrLost) {
			t.Error("the lock's context goes on")
		}
	})
}

func TestAReadIsRepeatedUntilItIsAnswered(t *testing.T) {
	for name, fault := range map[string]lab.Fault{
		"conflict":  lab.Answer(func() *http.Response { return lab.Cancellation("None", "TransactionConflict") }),
		"throttled": lab.Answer(func() *http.Response { return lab.Refusal(400, "ThrottlingException") }),
		"reset":     lab.LoseReply,
		"silence":   lab.Cut,
	} {
		t.Run(name, func(t *testing.T) {
			lab.InBubble(t, func(t *testing.T, w *lab.World) {
				c, wire := w.Work().Client(lab.Config())
				lock := w.Acquire(c, "job")
				wire.SetFault(lab.Once(lab.Call.Reads, fault))
				if items, err := lock.Read(t.Context(), []types.TransactGetItem{lab.Get("a")}); err != nil || len(items) != 1 {
					t.Errorf("read %v: %v", items, err)
				}
				wire.SetFault(lab.Respond(lab.Call.Reads, func() *http.Response { return lab.Refusal(400, "AccessDeniedException") }))
				var op *leasehold.OpError
				if _, err := lock.Read(t.Context(), nil); !errors.As(err, &op) || op.Op != "read" {
					t.Errorf("refused: %v", err)
				}
				w.Release(lock)
			})
		})
	}
}

func TestAReadEndsWithItsContextOrTheTrust(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Work().Client(lab.Config())
		lock := w.Acquire(c, "job")
		wire.SetFault(lab.Cut)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		if _, err := lock.Read(ctx, nil); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != time.Second {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
		if _, err := lock.Read(t.Context(), nil); !errors.Is(err, leasehold.ErrLost) {
			t.Errorf("read: %v", err)
		}
		if took := time.Since(began); took < 18*time.Second || took > 22*time.Second {
			t.Errorf("gave up after %v", took)
		}
	})
}

func TestWhatCanNeverBeReadIsRefusedBeforeAnythingIsSent(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Work().Client(lab.Config())
		lock := w.Acquire(c, "job")
		wire.Sent()
		hundred := make([]types.TransactGetItem, 100)
		for i := range hundred {
			hundred[i] = lab.Get("a")
		}
		for name, gets := range map[string][]types.TransactGetItem{
			"a hundred items": hundred,
			"nothing to get":  {{}},
			"the own record":  {{Get: &types.Get{TableName: aws.String("locks"), Key: lab.Key("job")}}},
		} {
			if _, err := lock.Read(t.Context(), gets); err == nil || lock.Err() != nil {
				t.Errorf("%s: %v, lock: %v", name, err, lock.Err())
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := lock.Read(ctx, nil); !errors.Is(err, context.Canceled) {
			t.Errorf("with an ended context: %v", err)
		}
		if sent := wire.Sent(); len(sent) != 0 {
			t.Errorf("sent %v", sent)
		}
		w.Release(lock)
	})
}

// plain is a wrapper that keeps the SDK's signatures and drops the options of
// each call.
type plain struct{ machine.DB }

func (p plain) TransactWriteItems(ctx context.Context, in *dynamodb.TransactWriteItemsInput, _ ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error) {
	return p.DB.TransactWriteItems(ctx, in)
}

func TestACommitGoesThroughAWrapperThatDropsItsOptions(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		w.Work()
		slowly := w.Wire()
		slowly.SetFault(lab.Script(nil, lab.Slow(2*time.Second)))
		c := w.ClientOf(plain{w.Connect(nil, func(o *dynamodb.Options) { o.HTTPClient = slowly })}, lab.Config())
		lock := w.Acquire(c, "job")
		if err := lock.Commit(t.Context(), lab.Writes(lab.Note("a", "1"))); err != nil {
			t.Error(err)
		}
		// When its values have been read cannot be known: the caller waits for the request.
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := lock.Commit(ctx, lab.Writes(lab.Note("a", "2"))); err != nil {
			t.Errorf("commit: %v", err)
		}
		w.WantLog("1", "2")
		w.Release(lock)
	})
}

func TestACommitReadsTheRecordThatARefusalDoesNotShow(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Work().Client(lab.Config())
		lock := w.Acquire(c, "job")
		w.Steal("job")
		wire.SetFault(lab.Respond(lab.Call.Commits, func() *http.Response { return lab.Cancellation("None", "ConditionalCheckFailed") }))
		var lost *leasehold.LostError
		if err := lock.Commit(t.Context(), lab.Writes(lab.Note("a", "1"))); !errors.As(err, &lost) || lost.Reason != leasehold.LostReplaced || lost.By == nil {
			t.Errorf("commit: %v", err)
		}
	})
}

func TestAFailedGuardEndsWhatDependsOnItWhereverTheGuardsStand(t *testing.T) {
	session := func(w *lab.World) string { return w.Sessions()[0] }
	for name, tc := range map[string]struct {
		ends func(w *lab.World)
		lost []string // of a group of a, b and c; sorted
		only bool     // under a shared lease
	}{
		"none":        {func(*lab.World) {}, nil, false},
		"the first":   {func(w *lab.World) { w.Steal("a") }, []string{"a"}, false},
		"the last":    {func(w *lab.World) { w.Steal("c") }, []string{"c"}, false},
		"two":         {func(w *lab.World) { w.Steal("c"); w.Steal("b") }, []string{"b", "c"}, false},
		"the session": {func(w *lab.World) { w.MarkDead(session(w)) }, []string{"a", "b", "c"}, true},
		"both":        {func(w *lab.World) { w.Steal("b"); w.MarkDead(session(w)) }, []string{"a", "b", "c"}, true},
	} {
		for _, shared := range []bool{false, true} {
			for first := range 3 {
				if tc.only && !shared {
					continue
				}
				t.Run(fmt.Sprintf("%s, behind %d writes, shared lease %t", name, first, shared), func(t *testing.T) {
					lab.InBubble(t, func(t *testing.T, w *lab.World) {
						cfg := lab.Config()
						cfg.SharedLease = shared
						c, _ := w.Work().Client(cfg)
						g := w.AcquireAll(c, leasehold.Keys("a", "b", "c"))
						tc.ends(w)
						items := []types.TransactWriteItem{lab.Note("x", "1"), lab.Note("y", "1")}[:first]
						items = append(append(items, g.Guards()...), lab.NoteIf("behind", "1"))
						err := w.Transact(items...)
						told := g.GuardError(err, first)
						var lost *leasehold.LostError
						switch {
						case len(tc.lost) == 0 && told != err: //nolint:errorlint // it is the error itself
							t.Errorf("error %v, want %v", told, err)
						case len(tc.lost) > 0 && (!errors.As(told, &lost) || lost.Key.Partition != tc.lost[0] || !errors.Is(told, err)):
							t.Errorf("error %v, want the loss of %s", told, tc.lost[0])
						}
						for _, l := range g.Locks() {
							if ended := l.Err() != nil; ended != slices.Contains(tc.lost, l.Key().Partition) {
								t.Errorf("%v has ended: %t, lost are %v", l.Key(), ended, tc.lost)
							}
						}
						_ = c.Close(t.Context())
					})
				})
			}
		}
	}
}

func TestAWrongIndexOfTheGuardsEndsNothing(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, _ := w.Work().Client(lab.SharedConfig())
		g := w.AcquireAll(c, leasehold.Keys("a", "b"))
		w.Steal("b")
		err := w.Transact(append(g.Guards(), lab.Note("behind", "1"))...)
		for _, first := range []int{math.MinInt, -1, 1, 2, 3, 4, 5, math.MaxInt} {
			if told := g.GuardError(err, first); told != err || g.Err() != nil { //nolint:errorlint // it is the error itself
				t.Errorf("from %d on: %v, the locks: %v", first, told, g.Err())
			}
		}
		if told := g.GuardError(err, 0); !errors.Is(told, leasehold.ErrLost) {
			t.Errorf("from 0 on: %v", told)
		}
		_ = c.Close(t.Context())
	})
}

// reasonOf is why a lock was lost, as an error says it.
func reasonOf(err error) leasehold.LostReason {
	var lost *leasehold.LostError
	if !errors.As(err, &lost) {
		return ""
	}
	return lost.Reason
}

func TestATakeoverUnderASharedLeaseIsNotCalledABreak(t *testing.T) {
	for name, looked := range map[string]bool{"looked at before": true, "not looked at": false} {
		t.Run(name, func(t *testing.T) {
			lab.InBubble(t, func(t *testing.T, w *lab.World) {
				began := time.Now()
				var asleep time.Duration // what no timer knows of
				c, _ := w.Work().Client(lab.SharedConfig(), lab.Clocks(func() (mono, boot time.Duration) {
					return time.Since(began), time.Since(began) + asleep
				}))
				g := w.AcquireAll(c, leasehold.Keys("a", "b"))
				taken, left := g.Locks()[0], g.Locks()[1]
				asleep = 30 * time.Second
				w.MarkDead(w.Sessions()[0]) // by a waiter, who takes one of them
				w.Steal("a")
				if looked && (reasonOf(taken.Err()) != leasehold.LostPaused || reasonOf(left.Err()) != leasehold.LostPaused) {
					t.Errorf("by its own clocks: %v", left.Err())
				}
				failed := w.Transact(g.Guards()...)
				if err := g.GuardError(failed, 0); reasonOf(err) != leasehold.LostReplaced || !errors.Is(err, failed) {
					t.Errorf("that which was taken over: %v", err)
				}
				failed = w.Transact(left.Guards()...)
				if err := left.GuardError(failed, 0); reasonOf(err) != leasehold.LostPaused || !errors.Is(err, failed) {
					t.Errorf("that which nobody has taken: %v", err)
				}
				if reasonOf(left.Err()) != leasehold.LostPaused || looked && reasonOf(taken.Err()) != leasehold.LostPaused {
					t.Errorf("ended by %v and %v", taken.Err(), left.Err())
				}
				_ = c.Close(t.Context())
			})
		})
	}
}

func TestARenewalThatComesAfterASessionsDeathIsNotCalledABreak(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		began := time.Now()
		var asleep atomic.Int64 // what no timer knows of
		c, wire := w.Client(lab.SharedConfig(), lab.Clocks(func() (mono, boot time.Duration) {
			return time.Since(began), time.Since(began) + time.Duration(asleep.Load())
		}))
		lock := w.Acquire(c, "job")
		wire.SetFault(lab.Once(lab.Call.RenewsSession, func(r *lab.Request) (*http.Response, error) {
			asleep.Store(int64(30 * time.Second))
			w.MarkDead(w.Sessions()[0])
			return r.Send()
		}))
		lab.Elapse(6 * time.Second)
		if err := lock.Err(); reasonOf(err) != leasehold.LostExpired {
			t.Errorf("its lease ran out while the renewal was on its way: %v", err)
		}
		_ = c.Close(t.Context())
	})
}
