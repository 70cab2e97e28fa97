package hold_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
)

func TestMethodGuardErrorEndsLockOnlyIfItsGuardFailed(t *testing.T) {
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
			"other write failed": {cancelled, 1},
			"a conflict":         {conflict, 1},
			"an index too high":  {cancelled, 2},
			"an index too low":   {cancelled, -1},
			"another error":      {context.DeadlineExceeded, 0},
			"a table not found":  {&types.ResourceNotFoundException{}, 0},
			"a single condition": {&types.ConditionalCheckFailedException{}, 0},
		} {
			if err := lock.GuardError(tc.err, tc.i); !errors.Is(err, tc.err) || errors.Is(err, leasehold.ErrLost) || lock.Err() != nil {
				t.Errorf("%s: %v, Err of the lock: %v", name, err, lock.Err())
			}
		}
		w.Release(lock)
	})
}

func TestMethodGuardErrorOfGroupEndsOnlyLocksWhoseGuardFailed(t *testing.T) {
	session := func(w *lab.World) string { return w.Sessions()[0] }
	for name, tc := range map[string]struct {
		ends func(w *lab.World)
		lost []string // keys of the locks that are lost, sorted; the group has a, b and c
		only bool     // if true, the case is tested only under a shared lease
	}{
		"no lock":         {func(*lab.World) {}, nil, false},
		"first lock":      {func(w *lab.World) { w.Steal("a") }, []string{"a"}, false},
		"last lock":       {func(w *lab.World) { w.Steal("c") }, []string{"c"}, false},
		"two locks":       {func(w *lab.World) { w.Steal("c"); w.Steal("b") }, []string{"b", "c"}, false},
		"session":         {func(w *lab.World) { w.MarkDead(session(w)) }, []string{"a", "b", "c"}, true},
		"session and one": {func(w *lab.World) { w.Steal("b"); w.MarkDead(session(w)) }, []string{"a", "b", "c"}, true},
	} {
		for _, shared := range []bool{false, true} {
			for first := range 3 {
				if tc.only && !shared {
					continue
				}
				t.Run(fmt.Sprintf("%s, after %d writes, shared lease %t", name, first, shared), func(t *testing.T) {
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
						case len(tc.lost) == 0 && told != err: //nolint:errorlint // no errors.Is here: GuardError returns err itself
							t.Errorf("error %v, want %v", told, err)
						case len(tc.lost) > 0 && (!errors.As(told, &lost) || lost.Key.Partition != tc.lost[0] || !errors.Is(told, err)):
							t.Errorf("error %v, want the loss of %s", told, tc.lost[0])
						}
						for _, l := range g.Locks() {
							lab.Want(t, l.Key().String()+" has ended", l.Err() != nil, slices.Contains(tc.lost, l.Key().Partition))
						}
						_ = c.Close(t.Context())
					})
				})
			}
		}
	}
}

func TestLockWithOwnLeaseIsNotLostIfSessionOfItsGroupIsDead(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		first, _ := w.Client(lab.Config())
		grant := w.Detach(w.Acquire(first, "a"))
		c, _ := w.Client(lab.SharedConfig())
		resumed := w.Resume(c, grant) // a resumed lock has its own lease and no session
		g := reentrant(w, c, resumed, "a", "b")
		w.MarkDead(w.Sessions()[0])
		lab.Want(t, "lost key", lostIn(g.GuardError(w.Transact(g.Guards()...), 0)).Key.Partition, "b")
		lab.WantErr(t, "resumed lock", resumed.Err(), nil)
		_ = c.Close(t.Context())
	})
}

func TestMethodGuardErrorEndsNoLockOfGroupIfGuardIndexIsWrong(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, _ := w.Work().Client(lab.SharedConfig())
		g := w.AcquireAll(c, leasehold.Keys("a", "b"))
		w.Steal("b")
		err := w.Transact(append(g.Guards(), lab.Note("behind", "1"))...)
		for _, first := range []int{math.MinInt, -1, 1, 2, 3, 4, 5, math.MaxInt} {
			if told := g.GuardError(err, first); told != err || g.Err() != nil { //nolint:errorlint // no errors.Is here: GuardError returns err itself
				t.Errorf("first index %d: %v, Err of the group: %v", first, told, g.Err())
			}
		}
		lab.WantErr(t, "first index 0", g.GuardError(err, 0), leasehold.ErrLost)
		_ = c.Close(t.Context())
	})
}

func TestGuardedReadIsRepeatedUntilAnswered(t *testing.T) {
	lab.Each(t, map[string]lab.Fault{
		"conflict":  lab.Answer(func() *http.Response { return lab.Cancellation("None", "TransactionConflict") }),
		"throttled": lab.Refused("ThrottlingException"),
		"reset":     lab.LoseReply,
		"no reply":  lab.Cut,
	}, func(t *testing.T, w *lab.World, fault lab.Fault) {
		_, wire, lock := w.Work().Holding(lab.Config())
		wire.SetFault(lab.Once(lab.Call.Reads, fault))
		if items, err := lock.Read(t.Context(), []types.TransactGetItem{lab.Get("a")}); err != nil || len(items) != 1 {
			t.Errorf("read %v: %v", items, err)
		}
		wire.SetFault(lab.On(lab.Call.Reads, lab.Refused("AccessDeniedException")))
		var op *leasehold.OpError
		if _, err := lock.Read(t.Context(), nil); !errors.As(err, &op) || op.Op != "read" {
			t.Errorf("refused read: %v", err)
		}
		w.Release(lock)
	})
}

func TestUnansweredGuardedReadFailsIfContextEndsOrLockIsLost(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		_, wire, lock := w.Work().Holding(lab.Config())
		wire.SetFault(lab.Cut)
		ctx := w.Within(time.Second)
		began := time.Now()
		lab.WantErr(t, "read", lab.ErrorOf(lock.Read(ctx, nil)), context.DeadlineExceeded)
		lab.Want(t, "returned after", time.Since(began), time.Second)
		lab.WantErr(t, "read", lab.ErrorOf(lock.Read(t.Context(), nil)), leasehold.ErrLost)
		lab.WantTook(t, "failed after", began, 18*time.Second, 22*time.Second)
	})
}

func TestInvalidGuardedReadFailsWithoutRequest(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		_, wire, lock := w.Work().Holding(lab.Config())
		wire.Sent()
		hundred := make([]types.TransactGetItem, 100)
		for i := range hundred {
			hundred[i] = lab.Get("a")
		}
		for name, gets := range map[string][]types.TransactGetItem{
			"a hundred items":  hundred,
			"item without Get": {{}},
			"own record":       {{Get: &types.Get{TableName: aws.String("locks"), Key: lab.Key("job")}}},
		} {
			if _, err := lock.Read(t.Context(), gets); err == nil || lock.Err() != nil {
				t.Errorf("%s: %v, Err of the lock: %v", name, err, lock.Err())
			}
		}
		lab.WantErr(t, "read with an ended context", lab.ErrorOf(lock.Read(w.Ended(), nil)), context.Canceled)
		lab.Want(t, "requests", len(wire.Sent()), 0)
		w.Release(lock)
	})
}

func TestErrorOfTooLargeGuardedReadContainsMaximumNumberOfItems(t *testing.T) {
	type row struct {
		cfg  leasehold.Config
		said string
	}
	lab.Each(t, map[string]row{
		"own lease":    {lab.Config(), "at most 99 beside the lock's record"},
		"shared lease": {lab.SharedConfig(), "at most 98 beside the lock's record"},
	}, func(t *testing.T, w *lab.World, tc row) {
		c, _, lock := w.Holding(tc.cfg)
		lab.WantText(t, "read", lab.ErrorOf(lock.Read(t.Context(), make([]types.TransactGetItem, 100))), tc.said)
		w.Release(lock)
		_ = c.Close(t.Context())
	})
}

func TestInvalidCommitFailsBeforeAnyRequest(t *testing.T) {
	put := func(table string, item map[string]types.AttributeValue) types.TransactWriteItem {
		return types.TransactWriteItem{Put: &types.Put{TableName: aws.String(table), Item: item}}
	}
	both := lab.Note("a", "1")
	both.Delete = &types.Delete{TableName: aws.String("work"), Key: lab.WorkKey("b")}
	own := map[string]types.AttributeValue{"key": lab.Str("job"), "x": lab.Str("y")}
	const arn = "arn:aws:dynamodb:eu-west-1:123456789012:table/locks"
	lab.Each(t, map[string][]types.TransactWriteItem{
		"a hundred writes":         slices.Repeat(lab.Writes(lab.Note("a", "1")), 100),
		"no operation":             lab.Writes(lab.Note("a", "1"), types.TransactWriteItem{}),
		"two operations":           lab.Writes(both),
		"put of own record":        lab.Writes(put("locks", own)),
		"put of own record by ARN": lab.Writes(put(arn, own)),
		"update of own record":     lab.Writes(types.TransactWriteItem{Update: &types.Update{TableName: aws.String("locks"), Key: lab.Key("job"), UpdateExpression: aws.String("SET x = :y")}}),
		"delete of own record":     lab.Writes(types.TransactWriteItem{Delete: &types.Delete{TableName: aws.String("locks"), Key: lab.Key("job")}}),
		"check of own record":      lab.Writes(types.TransactWriteItem{ConditionCheck: &types.ConditionCheck{TableName: aws.String("locks"), Key: lab.Key("job"), ConditionExpression: aws.String("attribute_exists(x)")}}),
	}, func(t *testing.T, w *lab.World, refused []types.TransactWriteItem) {
		_, wire, lock := w.Work().Holding(lab.Config())
		wire.Sent()
		lab.WantText(t, "commit", lock.Commit(t.Context(), refused), "job")
		lab.Want(t, "requests", len(wire.Sent()), 0)
		lab.WantErr(t, "lock", lock.Err(), nil)
		w.Release(lock)
	})
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		_, _, lock := w.Work().Holding(lab.Config())
		// This write is allowed: the key of its item is not the key of the lock.
		many := lab.Writes(put("locks", map[string]types.AttributeValue{"key": lab.Str("other"), "x": lab.Str("y")}))
		many = append(many, types.TransactWriteItem{Delete: &types.Delete{TableName: aws.String("work"), Key: lab.WorkKey("gone")}})
		for i := range 97 {
			many = append(many, lab.Note(fmt.Sprint(i), "1"))
		}
		lab.WantErr(t, "99 writes", lock.Commit(t.Context(), many), nil)
		w.Release(lock)
	})
}

func TestErrorFromCommitIdentifiesNewHolder(t *testing.T) {
	type row struct {
		cfg     leasehold.Config
		happens func(w *lab.World, wire *lab.Wire)
	}
	lab.Each(t, map[string]row{
		"reply has no record": {lab.Config(), func(_ *lab.World, wire *lab.Wire) {
			wire.SetFault(lab.Respond(lab.Call.Commits, func() *http.Response {
				return lab.Cancellation("None", "ConditionalCheckFailed")
			}))
		}},
		"session is dead": {lab.SharedConfig(), func(w *lab.World, _ *lab.Wire) { w.MarkDead(w.Sessions()[0]) }},
	}, func(t *testing.T, w *lab.World, tc row) {
		c, wire, lock := w.Work().Holding(tc.cfg)
		tc.happens(w, wire)
		w.Steal("job")
		if lost := lostIn(lock.Commit(t.Context(), noted("1"))); lost.Reason != leasehold.LostReplaced || lost.By == nil {
			t.Errorf("commit: %v", lost)
		}
		_ = c.Close(t.Context())
	})
}
