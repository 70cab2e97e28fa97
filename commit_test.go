package leasehold_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/layout"
)

// work gives a world a table of the caller's, with key "id".
func (w *world) work() *world {
	w.t.Helper()
	_, err := w.db.CreateTable(w.t.Context(), &dynamodb.CreateTableInput{
		TableName:            aws.String("work"),
		BillingMode:          types.BillingModePayPerRequest,
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("id"), KeyType: types.KeyTypeHash}},
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("id"), AttributeType: types.ScalarAttributeTypeS}},
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return w
}

func workKey(id string) map[string]types.AttributeValue {
	return map[string]types.AttributeValue{"id": str(id)}
}

// note is a write that appends value to the log of an item of table work. It
// has many names and values: the SDK writes them in an order of its own.
func note(id, value string) types.TransactWriteItem {
	return types.TransactWriteItem{Update: &types.Update{
		TableName:                aws.String("work"),
		Key:                      workKey(id),
		UpdateExpression:         aws.String("SET #l = list_append(if_not_exists(#l, :none), :v), #a = :v, #b = :none"),
		ExpressionAttributeNames: map[string]string{"#l": "log", "#a": "last", "#b": "first"},
		ExpressionAttributeValues: map[string]types.AttributeValue{
			":v": &types.AttributeValueMemberL{Value: []types.AttributeValue{str(value)}}, ":none": &types.AttributeValueMemberL{},
		},
	}}
}

// noteIf is note on condition that the item is open.
func noteIf(id, value string) types.TransactWriteItem {
	w := note(id, value)
	w.Update.ConditionExpression = aws.String("attribute_exists(#o)")
	w.Update.ExpressionAttributeNames["#o"] = "open"
	w.Update.ReturnValuesOnConditionCheckFailure = types.ReturnValuesOnConditionCheckFailureAllOld
	return w
}

// open lets noteIf succeed on an item.
func (w *world) open(id string) {
	w.t.Helper()
	item := w.workItem(id)
	if item == nil {
		item = workKey(id)
	}
	item["open"] = str("yes")
	if _, err := w.db.PutItem(context.WithoutCancel(w.t.Context()), &dynamodb.PutItemInput{TableName: aws.String("work"), Item: item}); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) workItem(id string) map[string]types.AttributeValue {
	w.t.Helper()
	out, err := w.db.GetItem(context.WithoutCancel(w.t.Context()), &dynamodb.GetItemInput{
		TableName: aws.String("work"), Key: workKey(id), ConsistentRead: aws.Bool(true),
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return out.Item
}

// log returns what was appended to an item of table work.
func (w *world) log(id string) []string {
	w.t.Helper()
	return logOf(w.workItem(id))
}

func logOf(item map[string]types.AttributeValue) []string {
	var out []string
	if list, ok := item["log"].(*types.AttributeValueMemberL); ok {
		for _, v := range list.Value {
			out = append(out, v.(*types.AttributeValueMemberS).Value)
		}
	}
	return out
}

func (w *world) wantLog(want ...string) {
	w.t.Helper()
	if got := w.log("a"); !slices.Equal(got, want) {
		w.t.Errorf("written %q, want %q", got, want)
	}
}

func writes(w ...types.TransactWriteItem) []types.TransactWriteItem { return w }

func commits(calls []call) int { return countCalls(calls, call.commits) }

func countCalls(calls []call, is func(call) bool) int {
	n := 0
	for _, c := range calls {
		if is(c) {
			n++
		}
	}
	return n
}

// steal has somebody else hold the key, whatever its holder believes.
func (w *world) steal(key string) {
	w.t.Helper()
	w.update(key, map[string]types.AttributeValue{
		"ownerName": str("thief/00000000000000000000000000000000"), "grantId": str("theirs"), "recordVersionNumber": str("theirs"),
		"fencingToken": num("9000000000000000"),
	})
}

// respond answers every request that fits with a fault of DynamoDB.
func respond(fits func(call) bool, res func() *http.Response) func(context.Context, call, func() (*http.Response, error)) (*http.Response, error) {
	return func(_ context.Context, c call, next func() (*http.Response, error)) (*http.Response, error) {
		if fits(c) {
			return res(), nil
		}
		return next()
	}
}

// script gives the nth commit the nth fault, and passes the rest on.
func script(faults ...func(context.Context, call, func() (*http.Response, error)) (*http.Response, error)) func(context.Context, call, func() (*http.Response, error)) (*http.Response, error) {
	var mu sync.Mutex
	n := 0
	return func(ctx context.Context, c call, next func() (*http.Response, error)) (*http.Response, error) {
		mu.Lock()
		i := -1
		if c.commits() {
			i = n
			n++
		}
		mu.Unlock()
		if i < 0 || i >= len(faults) || faults[i] == nil {
			return next()
		}
		return faults[i](ctx, c, next)
	}
}

// delayed loses sight of the request, which arrives that much later.
func delayed(d time.Duration) func(context.Context, call, func() (*http.Response, error)) (*http.Response, error) {
	return func(_ context.Context, _ call, next func() (*http.Response, error)) (*http.Response, error) {
		go func() {
			time.Sleep(d)
			_, _ = next()
		}()
		return nil, errReset
	}
}

func answer(res func() *http.Response) func(context.Context, call, func() (*http.Response, error)) (*http.Response, error) {
	return func(context.Context, call, func() (*http.Response, error)) (*http.Response, error) { return res(), nil }
}

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

func TestACommitWhoseReplyIsLostLandsOnce(t *testing.T) {
	for name, fault := range map[string]func(context.Context, call, func() (*http.Response, error)) (*http.Response, error){
		"reset": loseReply,
		"silence": func(ctx context.Context, _ call, next func() (*http.Response, error)) (*http.Response, error) {
			_, _ = next()
			return hang(ctx)
		},
		"server error": func(_ context.Context, _ call, next func() (*http.Response, error)) (*http.Response, error) {
			_, _ = next()
			return refusal(500, "InternalServerError"), nil
		},
		"in progress": func(_ context.Context, _ call, next func() (*http.Response, error)) (*http.Response, error) {
			_, _ = next()
			return refusal(400, "TransactionInProgressException"), nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				c, wire := w.work().client(config())
				lock := w.acquire(c, "job")
				wire.sent()
				wire.setFault(script(fault, fault, fault))
				if err := lock.Commit(t.Context(), writes(note("a", "1"), note("b", "1"))); err != nil {
					t.Fatal(err)
				}
				w.wantLog("1")
				var bodies [][]byte
				for _, c := range wire.sent() {
					if c.commits() {
						bodies = append(bodies, c.body)
					}
				}
				// The same bytes: the token, and the members of every map in the same order.
				if len(bodies) != 4 || !slices.ContainsFunc(bodies, func(b []byte) bool { return bytes.Equal(b, bodies[0]) }) {
					t.Errorf("%d requests", len(bodies))
				}
				for _, b := range bodies {
					if !bytes.Equal(b, bodies[0]) {
						t.Errorf("a request was repeated as\n%s\nafter\n%s", b, bodies[0])
					}
				}
				w.release(lock)
			})
		})
	}
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

func TestARepeatedCommitSucceedsAlthoughTheLockHasBeenLostSince(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		c, wire := w.work().client(config())
		lock := w.acquire(c, "job")
		wire.setFault(script(func(_ context.Context, _ call, next func() (*http.Response, error)) (*http.Response, error) {
			_, _ = next()
			w.steal("job")
			return nil, errReset
		}))
		if err := lock.Commit(t.Context(), writes(note("a", "1"))); err != nil {
			t.Errorf("commit: %v", err)
		}
		w.wantLog("1")
		_ = lock.Release(t.Context())
	})
}

func TestAnUnansweredCommitIsSettledAfterTrustHasEnded(t *testing.T) {
	for name, landed := range map[string]bool{"landed": true, "not landed": false} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				c, wire := w.work().client(config())
				other, _ := w.client(config())
				lock := w.acquire(c, "job")
				cutOff := time.Now().Add(40 * time.Second)
				first := true
				wire.setFault(func(ctx context.Context, c call, next func() (*http.Response, error)) (*http.Response, error) {
					if first && landed && c.commits() {
						first = false
						_, _ = next()
					}
					if time.Now().Before(cutOff) {
						return hang(ctx)
					}
					return next()
				})
				result := make(chan error, 1)
				go func() { result <- lock.Commit(t.Context(), writes(note("a", "1"))) }()
				next := w.acquire(other, "job")
				switch err := <-result; {
				case landed && err != nil:
					t.Errorf("it landed: %v", err)
				case !landed && !errors.Is(err, leasehold.ErrLost):
					t.Errorf("it never lands: %v", err)
				}
				if got := len(w.log("a")); landed != (got == 1) {
					t.Errorf("written %d times", got)
				}
				w.release(next)
			})
		})
	}
}

func TestACallerThatLeavesIsToldThatTheOutcomeIsUnknown(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		c, wire := w.work().client(config())
		lock := w.acquire(c, "job")
		wire.setFault(script(slow(2 * time.Second)))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		values := note("a", "1")
		err := lock.Commit(ctx, writes(values))
		values.Update.ExpressionAttributeNames["#x"] = "the caller's again"
		if took := time.Since(began); took != time.Second {
			t.Errorf("returned after %v", took)
		}
		var failed *leasehold.CommitError
		if !errors.Is(err, leasehold.ErrUnknownOutcome) || errors.As(err, &failed) || errors.Is(err, leasehold.ErrLost) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("commit: %v", err)
		}
		if lock.Err() != nil {
			t.Errorf("lock: %v", lock.Err())
		}
		elapse(2 * time.Second)
		w.wantLog("1")
		w.release(lock)
	})
}

func TestACallerThatLeavesBetweenAnsweredRequestsIsToldThatNothingWasWritten(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		c, wire := w.work().client(config())
		lock := w.acquire(c, "job")
		wire.setFault(respond(call.commits, func() *http.Response { return cancellation("TransactionConflict", "None") }))
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		err := lock.Commit(ctx, writes(note("a", "1")))
		if err == nil || errors.Is(err, leasehold.ErrUnknownOutcome) || errors.Is(err, leasehold.ErrLost) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("commit: %v", err)
		}
		wire.setFault(nil)
		elapse(time.Minute)
		w.wantLog()
		w.release(lock)
	})
}

func TestACommitStopsFiveMinutesAfterItsFirstRequest(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		c, wire := w.work().client(config())
		lock := w.acquire(c, "job")
		wire.setFault(func(ctx context.Context, c call, next func() (*http.Response, error)) (*http.Response, error) {
			if c.commits() {
				return hang(ctx)
			}
			return next()
		})
		began := time.Now()
		err := lock.Commit(t.Context(), writes(note("a", "1")))
		if took := time.Since(began); took < 5*time.Minute || took > 5*time.Minute+5*time.Second {
			t.Errorf("gave up after %v", took)
		}
		if !errors.Is(err, leasehold.ErrUnknownOutcome) {
			t.Errorf("commit: %v", err)
		}
		wire.setFault(nil)
		w.release(lock)
	})
}

func TestConflictsAndThrottlingAreRepeatedUnderOneToken(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		throttled := 0
		cfg := config()
		cfg.OnEvent = func(_ context.Context, e leasehold.Event) {
			if e.Kind == leasehold.EventThrottled {
				throttled++
			}
		}
		c, wire := w.work().client(cfg)
		lock := w.acquire(c, "job")
		wire.sent()
		wire.setFault(script(
			answer(func() *http.Response { return cancellation("TransactionConflict", "None") }),
			answer(func() *http.Response { return cancellation("None", "TransactionConflict") }),
			answer(func() *http.Response { return cancellation("ThrottlingError", "None") }),
			answer(func() *http.Response { return cancellation("ProvisionedThroughputExceeded", "None") }),
			answer(func() *http.Response { return refusal(400, "ThrottlingException") }),
			answer(func() *http.Response { return refusal(400, "ProvisionedThroughputExceededException") }),
		))
		if err := lock.Commit(t.Context(), writes(note("a", "1"))); err != nil {
			t.Fatal(err)
		}
		tokens := map[string]bool{}
		for _, c := range wire.sent() {
			var in struct{ ClientRequestToken string }
			if c.commits() && json.Unmarshal(c.body, &in) == nil {
				tokens[in.ClientRequestToken] = true
			}
		}
		if len(tokens) != 1 || throttled != 6 {
			t.Errorf("%d tokens, %d events", len(tokens), throttled)
		}
		w.wantLog("1")
		w.release(lock)
	})
}

func TestConflictsAreRepeatedNoLongerThanTheLockIsTrusted(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		c, wire := w.work().client(config())
		lock := w.acquire(c, "job", leasehold.WithoutRenewal())
		wire.setFault(respond(call.commits, func() *http.Response { return cancellation("TransactionConflict", "None") }))
		began := time.Now()
		err := lock.Commit(t.Context(), writes(note("a", "1")))
		if took := time.Since(began); took < 18*time.Second || took > 20*time.Second {
			t.Errorf("gave up after %v", took)
		}
		var lost *leasehold.LostError
		if !errors.As(err, &lost) || lost.Reason != leasehold.LostExpired || errors.Is(err, leasehold.ErrUnknownOutcome) {
			t.Errorf("commit: %v", err)
		}
		wire.setFault(nil)
		_ = lock.Release(t.Context())
	})
}

// The first request is lost sight of, the second one meets a condition of the
// caller's that does not hold. The first may arrive when it does.
func TestAWriteThatFailsBehindAnUnansweredRequestFailsForEver(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		c, wire := w.work().client(config())
		lock := w.acquire(c, "job")
		wire.sent()
		wire.setFault(script(delayed(time.Minute)))
		err := lock.Commit(t.Context(), writes(noteIf("a", "late")))
		var failed *leasehold.CommitError
		if !errors.As(err, &failed) || len(failed.Reasons) != 1 || lock.Err() != nil {
			t.Errorf("commit: %v, lock: %v", err, lock.Err())
		}
		if n := commits(wire.sent()); n != 3 { // lost, failed, the guards alone
			t.Errorf("%d requests", n)
		}
		w.open("a")
		elapse(2 * time.Minute)
		w.wantLog()
		w.release(lock)
	})
}

// As above, but the first request arrives before its token is taken from it.
func TestAWriteThatFailsBehindARequestThatLandsAfterAllHasLanded(t *testing.T) {
	for name, then := range map[string][]func(context.Context, call, func() (*http.Response, error)) (*http.Response, error){
		"answered":           {nil},
		"lost reply":         {nil, loseReply},
		"voiding goes lost":  {hangs, nil, nil},
		"reading goes busy":  {nil, answer(func() *http.Response { return refusal(400, "ThrottlingException") })},
		"voiding is refused": {answer(func() *http.Response { return refusal(400, "TransactionInProgressException") }), nil},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				c, wire := w.work().client(config())
				lock := w.acquire(c, "job")
				var lost func() (*http.Response, error)
				faults := []func(context.Context, call, func() (*http.Response, error)) (*http.Response, error){
					func(_ context.Context, _ call, next func() (*http.Response, error)) (*http.Response, error) {
						lost = next
						return nil, errReset
					},
					func(_ context.Context, _ call, next func() (*http.Response, error)) (*http.Response, error) {
						res, err := next() // fails
						w.open("a")
						_, _ = lost()
						return res, err
					},
				}
				wire.setFault(script(append(faults, then...)...))
				if err := lock.Commit(t.Context(), writes(noteIf("a", "1"))); err != nil {
					t.Errorf("commit: %v", err)
				}
				w.wantLog("1")
				w.release(lock)
			})
		})
	}
}

func TestACommitThatCannotBeSettledIsUnknown(t *testing.T) {
	denied := answer(func() *http.Response { return refusal(400, "AccessDeniedException") })
	taken := answer(func() *http.Response { return refusal(400, "IdempotentParameterMismatchException") })
	for name, faults := range map[string][]func(context.Context, call, func() (*http.Response, error)) (*http.Response, error){
		"refused behind an unanswered request":  {delayed(time.Minute), denied},
		"the token is said to be taken":         {delayed(time.Minute), taken},
		"the guards alone are refused":          {delayed(time.Minute), nil, denied},
		"the token of a failed write is bound":  {delayed(time.Minute), nil, taken, nil},
		"nor can it be read whether it landed":  {delayed(time.Minute), nil, taken, denied},
		"the guards alone are never answered":   {delayed(time.Minute), nil, hangs, hangs, hangs, hangs, hangs, hangs, hangs, hangs, hangs},
		"busy behind an unanswered request":     {delayed(time.Minute), hangs, hangs, hangs, hangs, hangs, hangs, hangs},
		"cancelled for reasons nobody can tell": {delayed(time.Minute), answer(func() *http.Response { return cancellation() })},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				c, wire := w.work().client(config())
				lock := w.acquire(c, "job")
				wire.setFault(script(faults...))
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
				defer cancel()
				err := lock.Commit(ctx, writes(noteIf("a", "late")))
				var failed *leasehold.CommitError
				if !errors.Is(err, leasehold.ErrUnknownOutcome) || errors.As(err, &failed) || errors.Is(err, leasehold.ErrLost) {
					t.Errorf("commit: %v", err)
				}
				if lock.Err() != nil {
					t.Errorf("lock: %v", lock.Err())
				}
				wire.setFault(nil)
				w.release(lock)
				elapse(time.Minute)
			})
		})
	}
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

func TestCommitsOfOneLockTakeTurns(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		c, wire := w.work().client(config())
		lock := w.acquire(c, "job")
		var mu sync.Mutex
		now, most := 0, 0
		wire.setFault(func(ctx context.Context, c call, next func() (*http.Response, error)) (*http.Response, error) {
			if !c.commits() {
				return next()
			}
			mu.Lock()
			now++
			most = max(most, now)
			mu.Unlock()
			defer func() {
				mu.Lock()
				defer mu.Unlock()
				now--
			}()
			return slow(time.Second)(ctx, c, next)
		})
		var wg sync.WaitGroup
		for i := range 5 {
			wg.Go(func() {
				if err := lock.Commit(t.Context(), writes(note("a", fmt.Sprint(i)))); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if most != 1 || len(w.log("a")) != 5 {
			t.Errorf("%d commits at once, %d landed", most, len(w.log("a")))
		}
		w.release(lock)
	})
}

func TestAReleaseWaitsForACommitUnderWay(t *testing.T) {
	for name, waiting := range map[string]bool{"released": false, "handed over": true} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				c, wire := w.work().client(config())
				lock := w.acquire(c, "job")
				wire.setFault(script(func(ctx context.Context, _ call, next func() (*http.Response, error)) (*http.Response, error) {
					time.Sleep(2 * time.Second)
					return next()
				}))
				// The caller has left; its commit is still on its way.
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				if err := lock.Commit(ctx, writes(note("a", "1"))); !errors.Is(err, leasehold.ErrUnknownOutcome) {
					t.Errorf("commit: %v", err)
				}
				next := make(chan *leasehold.Lock, 1)
				if waiting {
					go func() { next <- w.acquire(c, "job") }()
				}
				began := time.Now()
				w.release(lock)
				if took := time.Since(began); took < time.Second {
					t.Errorf("released after %v", took)
				}
				w.wantLog("1")
				if waiting {
					w.release(<-next)
				}
			})
		})
	}
}

func TestAReleaseWaitsForACommitNoLongerThanItMay(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		c, wire := w.work().client(config())
		lock := w.acquire(c, "job")
		wire.setFault(func(ctx context.Context, c call, next func() (*http.Response, error)) (*http.Response, error) {
			if c.commits() && textOf(w.item("job"), "isReleased") == "" {
				return hang(ctx)
			}
			return next()
		})
		result := make(chan error, 1)
		go func() { result <- lock.Commit(t.Context(), writes(note("a", "1"))) }()
		elapse(time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		_ = lock.Release(ctx)
		elapse(5 * time.Second)
		if textOf(w.item("job"), "isReleased") != "1" {
			t.Error("the key is not free")
		}
		if err := <-result; !errors.Is(err, leasehold.ErrLost) || !errors.Is(err, leasehold.ErrReleased) {
			t.Errorf("commit: %v", err)
		}
		w.wantLog()
	})
}

func TestARenewalWaitsForACommitAQuarterOfTheTrustLeft(t *testing.T) {
	for name, tc := range map[string]struct{ commit, wait time.Duration }{
		"a short one": {time.Second, time.Second},
		"a long one":  {3 * time.Second, 2 * time.Second}, // 8 s of trust are left
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				c, wire := w.work().client(config())
				lock := w.acquire(c, "job", leasehold.WithoutRenewal())
				elapse(10 * time.Second)
				wire.setFault(func(ctx context.Context, c call, next func() (*http.Response, error)) (*http.Response, error) {
					if c.commits() {
						time.Sleep(tc.commit - time.Millisecond)
					}
					return next()
				})
				done := make(chan error, 1)
				go func() { done <- lock.Commit(t.Context(), writes(note("a", "1"))) }()
				elapse(0)
				began := time.Now()
				if err := lock.Renew(t.Context()); err != nil {
					t.Error(err)
				}
				if took := time.Since(began); (took - tc.wait).Abs() > 5*time.Millisecond {
					t.Errorf("the renewal waited %v, want %v", took, tc.wait)
				}
				if err := <-done; err != nil {
					t.Error(err)
				}
				w.release(lock)
			})
		})
	}
}

func TestARenewalDoesNotBreakACommit(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		c, wire := w.work().client(config())
		lock := w.acquire(c, "job")
		wire.setFault(script(func(_ context.Context, _ call, next func() (*http.Response, error)) (*http.Response, error) {
			go func() { _ = lock.Renew(context.Background()) }()
			time.Sleep(100 * time.Millisecond)
			version := textOf(w.item("job"), "recordVersionNumber")
			w.update("job", map[string]types.AttributeValue{"recordVersionNumber": str(version + "-renewed")})
			defer w.update("job", map[string]types.AttributeValue{"recordVersionNumber": str(version)})
			return next()
		}))
		if err := lock.Commit(t.Context(), writes(note("a", "1"))); err != nil {
			t.Error(err)
		}
		elapse(time.Minute)
		w.release(lock)
	})
}

func TestClosingTheClientDoesNotWaitForACommitThatIsNeverAnswered(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		c, wire := w.work().client(config())
		lock := w.acquire(c, "job")
		wire.setFault(func(ctx context.Context, c call, next func() (*http.Response, error)) (*http.Response, error) {
			if c.commits() {
				return hang(ctx)
			}
			return next()
		})
		result := make(chan error, 1)
		go func() { result <- lock.Commit(t.Context(), writes(note("a", "1"))) }()
		elapse(time.Second)
		began := time.Now()
		if err := c.Close(t.Context()); err != nil {
			t.Errorf("close: %v", err)
		}
		if took := time.Since(began); took > 3*time.Second {
			t.Errorf("closed after %v", took)
		}
		if err := <-result; !errors.Is(err, leasehold.ErrUnknownOutcome) || !errors.Is(err, leasehold.ErrClosed) {
			t.Errorf("commit: %v", err)
		}
	})
}

func TestCommitsWorkInEveryLayout(t *testing.T) {
	for _, l := range []layout.Layout{
		layout.Native{}, layout.AWSLabs{}, layout.Dynamolock{}, layout.PythonDynamoDBLock{}, layout.DynamoDLM{}, layout.DyndbMutex{},
	} {
		t.Run(l.Name(), func(t *testing.T) { commitsIn(t, l) })
	}
}
