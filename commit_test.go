package leasehold_test

import (
	"context"
	"errors"
	"fmt"

	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/layout"
)

func TestACommitIsOneRequest(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		var events []leasehold.Event
		cfg := config()
		cfg.OnEvent = func(_ context.Context, e leasehold.Event) {
			if e.Kind == leasehold.EventCommitted {
				events = append(events, e)
			}
		}
		c, wire := w.work().client(cfg)
		wire.meter = &meter{}
		lock := w.acquire(c, "job")
		wire.sent()
		wire.meter.reset()
		if err := lock.Commit(t.Context(), writes(note("a", "1"))); err != nil {
			t.Fatal(err)
		}
		if sent := wire.sent(); len(sent) != 1 || !sent[0].commits() {
			t.Errorf("sent %v", sent)
		}
		// Two units for each item of a transaction, a guard included.
		if used := wire.meter.reset(); used != (units{write: 4}) {
			t.Errorf("used %+v", used)
		}
		if len(events) != 1 || events[0].Err != nil || events[0].Requests != 1 || events[0].Token != lock.Token() {
			t.Errorf("events %+v", events)
		}
		w.wantLog("1")
		w.release(lock)
	})
}

func TestACommitWithoutWritesAsksWhetherTheGrantStands(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		c, _ := w.client(config())
		lock := w.acquire(c, "job")
		if err := lock.Commit(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		w.steal("job")
		if err := lock.Commit(t.Context(), nil); !errors.Is(err, leasehold.ErrLost) {
			t.Errorf("after the lock was lost: %v", err)
		}
	})
}

func TestACommitAfterItsGrantHasEndedWritesNothing(t *testing.T) {
	for name, end := range map[string]struct {
		by     func(w *world)
		reason leasehold.LostReason
		shown  bool
	}{
		"granted to another": {func(w *world) { w.steal("job") }, leasehold.LostReplaced, true},
		"broken": {func(w *world) {
			w.update("job", map[string]types.AttributeValue{"isReleased": str("1")})
		}, leasehold.LostBroken, true},
		"deleted":              {func(w *world) { w.delete("job") }, leasehold.LostBroken, false},
		"granted again, later": {func(w *world) { w.update("job", map[string]types.AttributeValue{"fencingToken": num("5")}) }, leasehold.LostBroken, true},
		"carried forward by a peer": {func(w *world) {
			w.update("job", map[string]types.AttributeValue{"ownerName": str("a peer")})
		}, leasehold.LostReplaced, true},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				c, wire := w.work().client(config())
				lock := w.acquire(c, "job")
				end.by(w)
				wire.sent()
				err := lock.Commit(t.Context(), writes(note("a", "stale")))
				if sent := wire.sent(); end.shown && len(sent) != 1 {
					t.Errorf("the refusal shows the record, and %v was sent", sent)
				}
				var lost *leasehold.LostError
				if !errors.As(err, &lost) || lost.Reason != end.reason || (lost.By != nil) != end.shown {
					t.Errorf("commit: %v", err)
				}
				if cancelled := (*types.TransactionCanceledException)(nil); !errors.As(err, &cancelled) {
					t.Errorf("the transaction's error is not in %v", err)
				}
				if !errors.Is(context.Cause(lock.Context()), leasehold.ErrLost) {
					t.Error("the lock's context goes on")
				}
				w.wantLog()
			})
		})
	}
}

func TestACommitThatArrivesAfterItsGrantHasEndedWritesNothing(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a, wire := w.work().client(config())
		b, _ := w.client(config())
		lock := w.acquire(a, "job")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		wire.setFault(script(delayed(time.Minute), hangs, hangs))
		if err := lock.Commit(ctx, writes(note("a", "stale"))); !errors.Is(err, leasehold.ErrUnknownOutcome) {
			t.Errorf("commit: %v", err)
		}
		w.release(lock)
		next := w.acquire(b, "job")
		elapse(2 * time.Minute)
		w.wantLog()
		w.release(next)
	})
}

func hangs(ctx context.Context, _ call, _ func() (*http.Response, error)) (*http.Response, error) {
	return hang(ctx)
}

func TestAWriteThatFailsLeavesTheLockHeld(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		c, wire := w.work().client(config())
		lock := w.acquire(c, "job")
		if err := lock.Commit(t.Context(), writes(note("b", "x"))); err != nil {
			t.Fatal(err)
		}
		wire.sent()
		err := lock.Commit(t.Context(), writes(note("a", "1"), noteIf("b", "2")))
		var failed *leasehold.CommitError
		if !errors.As(err, &failed) || len(failed.Reasons) != 2 || aws.ToString(failed.Reasons[0].Code) != "None" ||
			aws.ToString(failed.Reasons[1].Code) != "ConditionalCheckFailed" || len(logOf(failed.Reasons[1].Item)) != 1 {
			t.Fatalf("commit: %#v", err)
		}
		if !strings.Contains(err.Error(), "write 1: ConditionalCheckFailed") {
			t.Errorf("message %q", err)
		}
		if errors.Is(err, leasehold.ErrLost) || errors.Is(err, leasehold.ErrUnknownOutcome) || lock.Err() != nil {
			t.Errorf("commit: %v, lock: %v", err, lock.Err())
		}
		if sent := wire.sent(); len(sent) != 1 {
			t.Errorf("sent %v", sent)
		}
		w.wantLog()
		w.release(lock)
	})
}

func TestEveryCommitHasATokenOfItsOwn(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		c, wire := w.work().client(config())
		lock := w.acquire(c, "job")
		wire.sent()
		for range 2 {
			if err := lock.Commit(t.Context(), writes(note("a", "same"))); err != nil {
				t.Fatal(err)
			}
		}
		w.wantLog("same", "same")
		w.release(lock)
	})
}

func TestACommitThatIsRefusedHasWrittenNothing(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		c, wire := w.client(config()) // without the table of the writes
		lock := w.acquire(c, "job")
		wire.sent()
		err := lock.Commit(t.Context(), writes(note("a", "1")))
		var op *leasehold.OpError
		if !errors.As(err, &op) || op.Op != "commit" || !errors.Is(err, leasehold.ErrTableNotFound) || errors.Is(err, leasehold.ErrUnknownOutcome) {
			t.Errorf("commit: %v", err)
		}
		if n := len(wire.sent()); n != 1 || lock.Err() != nil {
			t.Errorf("%d requests, lock: %v", n, lock.Err())
		}
		w.release(lock)
	})
}

func TestWhatCanNeverBeCommittedIsRefusedBeforeAnythingIsSent(t *testing.T) {
	put := func(table string, item map[string]types.AttributeValue) types.TransactWriteItem {
		return types.TransactWriteItem{Put: &types.Put{TableName: aws.String(table), Item: item}}
	}
	both := note("a", "1")
	both.Delete = &types.Delete{TableName: aws.String("work"), Key: workKey("b")}
	own := map[string]types.AttributeValue{"key": str("job"), "x": str("y")}
	const arn = "arn:aws:dynamodb:eu-west-1:123456789012:table/locks"
	for name, refused := range map[string][]types.TransactWriteItem{
		"a hundred writes":       slices.Repeat(writes(note("a", "1")), 100),
		"no operation":           writes(note("a", "1"), types.TransactWriteItem{}),
		"two operations":         writes(both),
		"a put of the own row":   writes(put("locks", own)),
		"by ARN":                 writes(put(arn, own)),
		"an update of the own":   writes(types.TransactWriteItem{Update: &types.Update{TableName: aws.String("locks"), Key: keyItem("job"), UpdateExpression: aws.String("SET x = :y")}}),
		"a delete of the own":    writes(types.TransactWriteItem{Delete: &types.Delete{TableName: aws.String("locks"), Key: keyItem("job")}}),
		"a check of the own row": writes(types.TransactWriteItem{ConditionCheck: &types.ConditionCheck{TableName: aws.String("locks"), Key: keyItem("job"), ConditionExpression: aws.String("attribute_exists(x)")}}),
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				c, wire := w.work().client(config())
				lock := w.acquire(c, "job")
				wire.sent()
				err := lock.Commit(t.Context(), refused)
				if err == nil || !strings.Contains(err.Error(), "job") {
					t.Errorf("commit: %v", err)
				}
				if sent := wire.sent(); len(sent) != 0 || lock.Err() != nil {
					t.Errorf("sent %v, lock: %v", sent, lock.Err())
				}
				w.release(lock)
			})
		})
	}
	inBubble(t, func(t *testing.T, w *world) {
		c, _ := w.work().client(config())
		lock := w.acquire(c, "job")
		many := writes(put("locks", map[string]types.AttributeValue{"key": str("other"), "x": str("y")})) // somebody else's row is the caller's own affair
		for i := range 98 {
			many = append(many, note(fmt.Sprint(i), "1"))
		}
		if err := lock.Commit(t.Context(), many); err != nil {
			t.Errorf("99 writes: %v", err)
		}
		w.release(lock)
	})
}

func TestACommitOfALockThatIsOverSendsNothing(t *testing.T) {
	for name, over := range map[string]struct {
		by   func(w *world, c *leasehold.Client, lock *leasehold.Lock)
		want error
	}{
		"released": {func(w *world, _ *leasehold.Client, lock *leasehold.Lock) { w.release(lock) }, leasehold.ErrReleased},
		"detached": {func(_ *world, _ *leasehold.Client, lock *leasehold.Lock) { _, _ = lock.Detach() }, leasehold.ErrDetached},
		"run out":  {func(*world, *leasehold.Client, *leasehold.Lock) { elapse(19 * time.Second) }, leasehold.ErrLost},
		"closed":   {func(w *world, c *leasehold.Client, _ *leasehold.Lock) { _ = c.Close(w.t.Context()) }, leasehold.ErrClosed},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				c, wire := w.work().client(config())
				lock := w.acquire(c, "job", leasehold.WithoutRenewal())
				over.by(w, c, lock)
				wire.sent()
				if err := lock.Commit(t.Context(), writes(note("a", "1"))); !errors.Is(err, over.want) {
					t.Errorf("commit: %v", err)
				}
				if _, err := lock.Read(t.Context(), nil); !errors.Is(err, over.want) {
					t.Errorf("read: %v", err)
				}
				if sent := wire.sent(); len(sent) != 0 {
					t.Errorf("sent %v", sent)
				}
			})
		})
	}
	inBubble(t, func(t *testing.T, w *world) {
		c, wire := w.work().client(config())
		lock := w.acquire(c, "job")
		wire.sent()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := lock.Commit(ctx, writes(note("a", "1"))); !errors.Is(err, context.Canceled) || errors.Is(err, leasehold.ErrUnknownOutcome) {
			t.Errorf("with an ended context: %v", err)
		}
		if sent := wire.sent(); len(sent) != 0 {
			t.Errorf("sent %v", sent)
		}
		w.release(lock)
	})
}

func TestCommitsWorkInEveryLayout(t *testing.T) {
	for _, l := range []layout.Layout{
		layout.Native{}, layout.AWSLabs{}, layout.Dynamolock{}, layout.PythonDynamoDBLock{}, layout.DynamoDLM{}, layout.DyndbMutex{},
	} {
		t.Run(l.Name(), func(t *testing.T) { commitsIn(t, l) })
	}
}
