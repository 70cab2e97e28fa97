package leasehold_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/layout"
)

func TestACommitIsOneRequest(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		var events []leasehold.Event
		cfg := lab.Config()
		cfg.OnEvent = func(_ context.Context, e leasehold.Event) {
			if e.Kind == leasehold.EventCommitted {
				events = append(events, e)
			}
		}
		c, wire := w.Work().Client(cfg)
		wire.Meter = &lab.Meter{}
		lock := w.Acquire(c, "job")
		wire.Sent()
		wire.Meter.Reset()
		if err := lock.Commit(t.Context(), lab.Writes(lab.Note("a", "1"))); err != nil {
			t.Fatal(err)
		}
		if sent := wire.Sent(); len(sent) != 1 || !sent[0].Commits() {
			t.Errorf("sent %v", sent)
		}
		// Two units for each item of a transaction, a guard included.
		if used := wire.Meter.Reset(); used != (lab.Units{Write: 4}) {
			t.Errorf("used %+v", used)
		}
		if len(events) != 1 || events[0].Err != nil || events[0].Requests != 1 || events[0].Token != lock.Token() {
			t.Errorf("events %+v", events)
		}
		w.WantLog("1")
		w.Release(lock)
	})
}

func TestACommitWithoutWritesAsksWhetherTheGrantStands(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, _ := w.Client(lab.Config())
		lock := w.Acquire(c, "job")
		if err := lock.Commit(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		w.Steal("job")
		if err := lock.Commit(t.Context(), nil); !errors.Is(err, leasehold.ErrLost) {
			t.Errorf("after the lock was lost: %v", err)
		}
	})
}

func TestACommitAfterItsGrantHasEndedWritesNothing(t *testing.T) {
	for name, end := range map[string]struct {
		by     func(w *lab.World)
		reason leasehold.LostReason
		shown  bool
	}{
		"granted to another": {func(w *lab.World) { w.Steal("job") }, leasehold.LostReplaced, true},
		"broken": {func(w *lab.World) {
			w.Update("job", map[string]types.AttributeValue{"isReleased": lab.Str("1")})
		}, leasehold.LostBroken, true},
		"deleted":              {func(w *lab.World) { w.Delete("job") }, leasehold.LostBroken, false},
		"granted again, later": {func(w *lab.World) { w.Update("job", map[string]types.AttributeValue{"fencingToken": lab.Num("5")}) }, leasehold.LostBroken, true},
		"carried forward by a peer": {func(w *lab.World) {
			w.Update("job", map[string]types.AttributeValue{"ownerName": lab.Str("a peer")})
		}, leasehold.LostReplaced, true},
	} {
		t.Run(name, func(t *testing.T) {
			lab.InBubble(t, func(t *testing.T, w *lab.World) {
				c, wire := w.Work().Client(lab.Config())
				lock := w.Acquire(c, "job")
				end.by(w)
				wire.Sent()
				err := lock.Commit(t.Context(), lab.Writes(lab.Note("a", "stale")))
				if sent := wire.Sent(); end.shown && len(sent) != 1 {
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
				w.WantLog()
			})
		})
	}
}

func TestALossThatACommitFindsIsToldOnceAndGivesTheNextInLineItsTurn(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		var told atomic.Int32
		cfg := lab.Config()
		cfg.OnEvent = func(_ context.Context, e leasehold.Event) {
			if e.Kind == leasehold.EventLost {
				told.Add(1)
			}
		}
		c, _ := w.Work().Client(cfg)
		lock := w.Acquire(c, "job")
		next := make(chan *leasehold.Lock, 1)
		go func() { next <- w.Acquire(c, "job") }()
		lab.Elapse(0)
		w.Delete("job")
		began := time.Now()
		if err := lock.Commit(t.Context(), lab.Writes(lab.Note("a", "stale"))); !errors.Is(err, leasehold.ErrLost) {
			t.Errorf("commit: %v", err)
		}
		heir := <-next
		if waited := time.Since(began); told.Load() != 1 || waited != 0 {
			t.Errorf("told %d times; the next in line waited %v", told.Load(), waited)
		}
		w.Release(heir)
	})
}

func TestACommitThatArrivesAfterItsGrantHasEndedWritesNothing(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		a, wire := w.Work().Client(lab.Config())
		b, _ := w.Client(lab.Config())
		lock := w.Acquire(a, "job")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		wire.SetFault(lab.Script(lab.Delayed(time.Minute), lab.Cut, lab.Cut))
		if err := lock.Commit(ctx, lab.Writes(lab.Note("a", "stale"))); !errors.Is(err, leasehold.ErrUnknownOutcome) {
			t.Errorf("commit: %v", err)
		}
		w.Release(lock)
		next := w.Acquire(b, "job")
		lab.Elapse(2 * time.Minute)
		w.WantLog()
		w.Release(next)
	})
}

func TestAWriteThatFailsLeavesTheLockHeld(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Work().Client(lab.Config())
		lock := w.Acquire(c, "job")
		if err := lock.Commit(t.Context(), lab.Writes(lab.Note("b", "x"))); err != nil {
			t.Fatal(err)
		}
		wire.Sent()
		err := lock.Commit(t.Context(), lab.Writes(lab.Note("a", "1"), lab.NoteIf("b", "2")))
		var failed *leasehold.CommitError
		if !errors.As(err, &failed) || len(failed.Reasons) != 2 || aws.ToString(failed.Reasons[0].Code) != "None" ||
			aws.ToString(failed.Reasons[1].Code) != "ConditionalCheckFailed" || len(lab.Log(failed.Reasons[1].Item)) != 1 {
			t.Fatalf("commit: %#v", err)
		}
		if !strings.Contains(err.Error(), "write 1: ConditionalCheckFailed") {
			t.Errorf("message %q", err)
		}
		if errors.Is(err, leasehold.ErrLost) || errors.Is(err, leasehold.ErrUnknownOutcome) || lock.Err() != nil {
			t.Errorf("commit: %v, lock: %v", err, lock.Err())
		}
		if sent := wire.Sent(); len(sent) != 1 {
			t.Errorf("sent %v", sent)
		}
		w.WantLog()
		w.Release(lock)
	})
}

func TestEveryCommitHasATokenOfItsOwn(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Work().Client(lab.Config())
		lock := w.Acquire(c, "job")
		wire.Sent()
		for range 2 {
			if err := lock.Commit(t.Context(), lab.Writes(lab.Note("a", "same"))); err != nil {
				t.Fatal(err)
			}
		}
		w.WantLog("same", "same")
		w.Release(lock)
	})
}

func TestACommitThatIsRefusedHasWrittenNothing(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.Config()) // without the table of the writes
		lock := w.Acquire(c, "job")
		wire.Sent()
		err := lock.Commit(t.Context(), lab.Writes(lab.Note("a", "1")))
		var op *leasehold.OpError
		if !errors.As(err, &op) || op.Op != "commit" || !errors.Is(err, leasehold.ErrTableNotFound) || errors.Is(err, leasehold.ErrUnknownOutcome) {
			t.Errorf("commit: %v", err)
		}
		if n := len(wire.Sent()); n != 1 || lock.Err() != nil {
			t.Errorf("%d requests, lock: %v", n, lock.Err())
		}
		w.Release(lock)
	})
}

func TestWhatCanNeverBeCommittedIsRefusedBeforeAnythingIsSent(t *testing.T) {
	put := func(table string, item map[string]types.AttributeValue) types.TransactWriteItem {
		return types.TransactWriteItem{Put: &types.Put{TableName: aws.String(table), Item: item}}
	}
	both := lab.Note("a", "1")
	both.Delete = &types.Delete{TableName: aws.String("work"), Key: lab.WorkKey("b")}
	own := map[string]types.AttributeValue{"key": lab.Str("job"), "x": lab.Str("y")}
	const arn = "arn:aws:dynamodb:eu-west-1:123456789012:table/locks"
	for name, refused := range map[string][]types.TransactWriteItem{
		"a hundred writes":       slices.Repeat(lab.Writes(lab.Note("a", "1")), 100),
		"no operation":           lab.Writes(lab.Note("a", "1"), types.TransactWriteItem{}),
		"two operations":         lab.Writes(both),
		"a put of the own row":   lab.Writes(put("locks", own)),
		"by ARN":                 lab.Writes(put(arn, own)),
		"an update of the own":   lab.Writes(types.TransactWriteItem{Update: &types.Update{TableName: aws.String("locks"), Key: lab.Key("job"), UpdateExpression: aws.String("SET x = :y")}}),
		"a delete of the own":    lab.Writes(types.TransactWriteItem{Delete: &types.Delete{TableName: aws.String("locks"), Key: lab.Key("job")}}),
		"a check of the own row": lab.Writes(types.TransactWriteItem{ConditionCheck: &types.ConditionCheck{TableName: aws.String("locks"), Key: lab.Key("job"), ConditionExpression: aws.String("attribute_exists(x)")}}),
	} {
		t.Run(name, func(t *testing.T) {
			lab.InBubble(t, func(t *testing.T, w *lab.World) {
				c, wire := w.Work().Client(lab.Config())
				lock := w.Acquire(c, "job")
				wire.Sent()
				err := lock.Commit(t.Context(), refused)
				if err == nil || !strings.Contains(err.Error(), "job") {
					t.Errorf("commit: %v", err)
				}
				if sent := wire.Sent(); len(sent) != 0 || lock.Err() != nil {
					t.Errorf("sent %v, lock: %v", sent, lock.Err())
				}
				w.Release(lock)
			})
		})
	}
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, _ := w.Work().Client(lab.Config())
		lock := w.Acquire(c, "job")
		many := lab.Writes(put("locks", map[string]types.AttributeValue{"key": lab.Str("other"), "x": lab.Str("y")})) // somebody else's row is the caller's own affair
		for i := range 98 {
			many = append(many, lab.Note(fmt.Sprint(i), "1"))
		}
		if err := lock.Commit(t.Context(), many); err != nil {
			t.Errorf("99 writes: %v", err)
		}
		w.Release(lock)
	})
}

func TestACommitOfALockThatIsOverSendsNothing(t *testing.T) {
	for name, over := range map[string]struct {
		by   func(w *lab.World, c *leasehold.Client, lock *leasehold.Lock)
		want error
	}{
		"released": {func(w *lab.World, _ *leasehold.Client, lock *leasehold.Lock) { w.Release(lock) }, leasehold.ErrReleased},
		"detached": {func(_ *lab.World, _ *leasehold.Client, lock *leasehold.Lock) { _, _ = lock.Detach() }, leasehold.ErrDetached},
		"run out":  {func(*lab.World, *leasehold.Client, *leasehold.Lock) { lab.Elapse(19 * time.Second) }, leasehold.ErrLost},
		"closed":   {func(w *lab.World, c *leasehold.Client, _ *leasehold.Lock) { _ = c.Close(w.T.Context()) }, leasehold.ErrClosed},
	} {
		t.Run(name, func(t *testing.T) {
			lab.InBubble(t, func(t *testing.T, w *lab.World) {
				c, wire := w.Work().Client(lab.Config())
				lock := w.Acquire(c, "job", leasehold.WithoutRenewal())
				over.by(w, c, lock)
				wire.Sent()
				if err := lock.Commit(t.Context(), lab.Writes(lab.Note("a", "1"))); !errors.Is(err, over.want) {
					t.Errorf("commit: %v", err)
				}
				if _, err := lock.Read(t.Context(), nil); !errors.Is(err, over.want) {
					t.Errorf("read: %v", err)
				}
				if sent := wire.Sent(); len(sent) != 0 {
					t.Errorf("sent %v", sent)
				}
			})
		})
	}
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Work().Client(lab.Config())
		lock := w.Acquire(c, "job")
		wire.Sent()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := lock.Commit(ctx, lab.Writes(lab.Note("a", "1"))); !errors.Is(err, context.Canceled) || errors.Is(err, leasehold.ErrUnknownOutcome) {
			t.Errorf("with an ended context: %v", err)
		}
		if sent := wire.Sent(); len(sent) != 0 {
			t.Errorf("sent %v", sent)
		}
		w.Release(lock)
	})
}

func TestCommitsWorkInEveryLayout(t *testing.T) {
	for _, l := range []layout.Layout{
		layout.Native{}, layout.AWSLabs{}, layout.Dynamolock{}, layout.PythonDynamoDBLock{}, layout.DynamoDLM{}, layout.DyndbMutex{},
	} {
		t.Run(l.Name(), func(t *testing.T) { commitsIn(t, l) })
	}
}

// DynamoDB forgets an idempotency token after ten minutes, as the engine does:
// a commit sent again under one that it has forgotten is another commit.

func TestACommitIsNotRepeatedUnderATokenThatGrewOldInSuspend(t *testing.T) {
	for name, meanwhile := range map[string]func(*lab.World){
		"the lock still held":    func(*lab.World) {},
		"the lock had by others": func(w *lab.World) { w.Steal("job") },
	} {
		t.Run(name, func(t *testing.T) {
			lab.InBubble(t, func(t *testing.T, w *lab.World) {
				cfg := lab.Config()
				cfg.Lease = time.Hour
				k := &lab.Jumps{}
				c, wire := w.Work().Client(cfg, k.Edit)
				lock := w.Acquire(c, "job", leasehold.WithoutRenewal())
				wire.Sent()
				wire.SetFault(lab.Once(lab.Call.Commits, func(r *lab.Request) (*http.Response, error) {
					_, _ = r.Send()
					time.Sleep(20 * time.Minute)
					k.Mono.Store(int64(-20 * time.Minute)) // the machine was suspended
					meanwhile(w)
					return nil, lab.ErrReset
				}))
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				if err := lock.Commit(ctx, lab.Writes(lab.Note("a", "1"))); !errors.Is(err, leasehold.ErrUnknownOutcome) || ctx.Err() != nil {
					t.Errorf("commit: %v", err)
				}
				if n := lab.Commits(wire.Sent()); n != 1 {
					t.Errorf("%d commits sent", n)
				}
				w.WantLog("1")
				_ = lock.Release(t.Context())
			})
		})
	}
}

// slowKeys are credentials that take a pause of the process to be had, once.
type slowKeys struct {
	pause atomic.Int64
}

func (k *slowKeys) Retrieve(context.Context) (aws.Credentials, error) {
	time.Sleep(time.Duration(k.pause.Swap(0)))
	return aws.Credentials{AccessKeyID: "test", SecretAccessKey: "test"}, nil
}

func TestACommitThatIsSignedAfterAPauseIsNotSentUnderAnOldToken(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		wire, keys := w.Work().Wire(), &slowKeys{}
		cfg := lab.Config()
		cfg.Lease = time.Hour
		c := w.ClientOf(w.Connect(nil, func(o *dynamodb.Options) { o.HTTPClient, o.Credentials = wire, keys }), cfg)
		lock := w.Acquire(c, "job", leasehold.WithoutRenewal())
		wire.Sent()
		wire.SetFault(lab.Once(lab.Call.Commits, func(r *lab.Request) (*http.Response, error) {
			_, _ = r.Send()
			keys.pause.Store(int64(11 * time.Minute)) // behind the look at the token's age, before the signing
			return nil, lab.ErrReset
		}))
		if err := lock.Commit(t.Context(), lab.Writes(lab.Note("a", "1"))); !errors.Is(err, leasehold.ErrUnknownOutcome) {
			t.Errorf("commit: %v", err)
		}
		if n := lab.Commits(wire.Sent()); n != 1 {
			t.Errorf("%d commits sent", n)
		}
		w.WantLog("1")

		// One whose first request was held up has written nothing, and says so.
		keys.pause.Store(int64(11 * time.Minute))
		err := lock.Commit(t.Context(), lab.Writes(lab.Note("a", "2")))
		if err == nil || errors.Is(err, leasehold.ErrUnknownOutcome) || lab.Commits(wire.Sent()) != 0 {
			t.Errorf("commit that was never sent: %v", err)
		}
		w.Release(lock)
	})
}
