package hold_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
)

func TestLockEndsOnlyIfItsOwnGuardConditionFails(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		_, _, lock := w.Work().Holding(lab.Config())
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

func TestFailedGuardAtEveryIndexEndsItsLock(t *testing.T) {
	session := func(w *lab.World) string { return w.Sessions()[0] }
	for name, tc := range map[string]struct {
		ends func(w *lab.World)
		lost []string // keys that are lost in a group of a, b and c, sorted
		only bool     // the case exists only under a shared lease
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

func TestFailedGuardOfSessionDoesNotEndResumedLock(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		first, _ := w.Client(lab.Config())
		grant := w.Detach(w.Acquire(first, "a"))
		c, _ := w.Client(lab.SharedConfig())
		resumed := w.Resume(c, grant) // has a lease of its own
		g := reentrant(w, c, resumed, "a", "b")
		w.MarkDead(w.Sessions()[0])
		told := g.GuardError(w.Transact(g.Guards()...), 0)
		var lost *leasehold.LostError
		if !errors.As(told, &lost) || lost.Key.Partition != "b" || resumed.Err() != nil {
			t.Errorf("error %v, the resumed lock: %v", told, resumed.Err())
		}
		_ = c.Close(t.Context())
	})
}

func TestWrongGuardIndexDoesNotEndLocks(t *testing.T) {
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
