package fence_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/internal/machine"
)

// applied returns a fault that applies the request and drops DynamoDB's reply. The client receives
// the result of the fault "answer" in place of the reply.
func applied(answer lab.Fault) lab.Fault {
	return func(r *lab.Request) (*http.Response, error) {
		_, _ = r.Send()
		return answer(r)
	}
}

func TestCommitWithLostReplyIsAppliedExactlyOnce(t *testing.T) {
	lab.Each(t, map[string]lab.Fault{
		"reset":        lab.LoseReply,
		"silence":      lab.Unheard,
		"server error": applied(lab.Out),
		"in progress":  applied(lab.Refused("TransactionInProgressException")),
	}, func(t *testing.T, w *lab.World, fault lab.Fault) {
		_, wire, lock := w.Work().Holding(lab.Config())
		wire.Sent()
		wire.SetFault(lab.Script(fault, fault, fault))
		lab.OK(t, lock.Commit(t.Context(), lab.Writes(lab.Note("a", "1"), lab.Note("b", "1"))))
		w.WantLog("1")
		var bodies [][]byte
		for _, c := range wire.Sent() {
			if c.Commits() {
				bodies = append(bodies, c.Body)
			}
		}
		// Equal bodies mean that all requests have the same idempotency token, and list the
		// members of every map in the same order.
		lab.Want(t, "requests", len(bodies), 4)
		for _, b := range bodies {
			lab.Want(t, "repeated request", string(b), string(bodies[0]))
		}
		w.Release(lock)
	})
}

func TestCommitReturnsCorrectOutcomeEvenAfterLockIsLost(t *testing.T) {
	lab.Each(t, map[string]bool{"applied": true, "not applied": false}, func(t *testing.T, w *lab.World, landed bool) {
		c, wire := w.Work().Client(lab.Config())
		other, _ := w.Client(lab.Config())
		lock := w.Acquire(c, "job")
		cutOff := time.Now().Add(40 * time.Second)
		first := true
		wire.SetFault(func(r *lab.Request) (*http.Response, error) {
			if first && landed && r.Commits() {
				first = false
				_, _ = r.Send()
			}
			if time.Now().Before(cutOff) {
				return lab.Cut(r)
			}
			return r.Send()
		})
		result := lab.Go(func() error { return lock.Commit(t.Context(), lab.Writes(lab.Note("a", "1"))) })
		next := w.Acquire(other, "job")
		switch err := <-result; {
		case landed && err != nil:
			t.Errorf("the write was applied, but Commit returned %v", err)
		case !landed && !errors.Is(err, leasehold.ErrLost):
			t.Errorf("the write was not applied, but Commit returned %v", err)
		}
		lab.Want(t, "applied", len(w.Log("a")) == 1, landed)
		w.Release(next)
	})
}

func TestTimedOutCommitReturnsErrUnknownOutcome(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		_, wire, lock := w.Work().Holding(lab.Config())
		wire.SetFault(lab.Script(lab.Slow(2 * time.Second)))
		ctx := w.Within(time.Second)
		began := time.Now()
		values := lab.Note("a", "1")
		err := lock.Commit(ctx, lab.Writes(values))
		values.Update.ExpressionAttributeNames["#x"] = "the caller's again"
		lab.Want(t, "returned after", time.Since(began), time.Second)
		if !errors.Is(err, leasehold.ErrUnknownOutcome) || errors.As(err, new(*leasehold.CommitError)) || errors.Is(err, leasehold.ErrLost) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("commit: %v", err)
		}
		lab.WantErr(t, "lock", lock.Err(), nil)
		lab.Elapse(2 * time.Second)
		w.WantLog("1")
		w.Release(lock)
	})
}

func TestCommitStopsRetryingAfterFiveMinutes(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		_, wire, lock := w.Work().Holding(lab.Config())
		wire.SetFault(lab.On(lab.Call.Commits, lab.Cut))
		began := time.Now()
		err := lock.Commit(t.Context(), lab.Writes(lab.Note("a", "1")))
		took := time.Since(began)
		lab.WantRange(t, "gave up after", took, 5*time.Minute, 5*time.Minute+5*time.Second)
		lab.WantErr(t, "commit", err, leasehold.ErrUnknownOutcome)
		wire.SetFault(nil)
		w.Release(lock)
	})
}

func TestRetriesOfCommitUseSameIdempotencyToken(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		throttled := 0
		cfg := lab.Config()
		cfg.OnEvent = func(_ context.Context, e leasehold.Event) {
			if e.Kind == leasehold.EventThrottled {
				throttled++
			}
		}
		_, wire, lock := w.Work().Holding(cfg)
		wire.Sent()
		wire.SetFault(lab.Script(
			lab.Answer(func() *http.Response { return lab.Cancellation("TransactionConflict", "None") }),
			lab.Answer(func() *http.Response { return lab.Cancellation("None", "TransactionConflict") }),
			lab.Answer(func() *http.Response { return lab.Cancellation("ThrottlingError", "None") }),
			lab.Answer(func() *http.Response { return lab.Cancellation("ProvisionedThroughputExceeded", "None") }),
			lab.Refused("ThrottlingException"),
			lab.Refused("ProvisionedThroughputExceededException"),
		))
		lab.OK(t, lock.Commit(t.Context(), lab.Writes(lab.Note("a", "1"))))
		tokens := map[string]bool{}
		for _, c := range wire.Sent() {
			var in struct{ ClientRequestToken string }
			if c.Commits() && json.Unmarshal(c.Body, &in) == nil {
				tokens[in.ClientRequestToken] = true
			}
		}
		lab.Want(t, "tokens", len(tokens), 1)
		lab.Want(t, "throttled events", throttled, 6)
		w.WantLog("1")
		w.Release(lock)
	})
}

// The first request of the commit is delayed. DynamoDB rejects the second, because the write's
// condition is still false. Then the condition becomes true, and the first request arrives and is
// applied. The third request has only guards, and finds the token used.
func TestCommitSucceedsIfFirstRequestArrivesAfterRetry(t *testing.T) {
	lab.Each(t, map[string][]lab.Fault{
		"answered":                {nil},
		"lost reply":              {nil, lab.LoseReply},
		"voiding request lost":    {lab.Cut, nil, nil},
		"rereading throttled":     {nil, lab.Refused("ThrottlingException")},
		"voiding request refused": {lab.Refused("TransactionInProgressException"), nil},
	}, func(t *testing.T, w *lab.World, then []lab.Fault) {
		_, wire, lock := w.Work().Holding(lab.Config())
		var lost func() (*http.Response, error)
		faults := []lab.Fault{
			func(r *lab.Request) (*http.Response, error) {
				lost = r.Send
				return nil, lab.ErrReset
			},
			func(r *lab.Request) (*http.Response, error) {
				res, err := r.Send() // DynamoDB rejects this request, because the write's condition is still false
				w.Open("a")
				_, _ = lost()
				return res, err
			},
		}
		wire.SetFault(lab.Script(append(faults, then...)...))
		lab.WantErr(t, "commit", lock.Commit(t.Context(), lab.Writes(lab.NoteIf("a", "1"))), nil)
		w.WantLog("1")
		w.Release(lock)
	})
}

// DynamoDB, and the simulated DynamoDB of the tests, forget an idempotency token after ten
// minutes. After that, a repeated request would be executed as a new commit.
func TestCommitIsNotRetriedIfIdempotencyTokenHasExpired(t *testing.T) {
	lab.Each(t, map[string]func(*lab.World){
		"lock still held": func(*lab.World) {},
		"lock stolen":     func(w *lab.World) { w.Steal("job") },
	}, func(t *testing.T, w *lab.World, meanwhile func(*lab.World)) {
		cfg := lab.Config()
		cfg.Lease = time.Hour
		k := &lab.Jumps{}
		c, wire := w.Work().Client(cfg, k.Edit)
		lock := w.Acquire(c, "job", leasehold.WithoutRenewal())
		wire.Sent()
		wire.SetFault(lab.Once(lab.Call.Commits, func(r *lab.Request) (*http.Response, error) {
			_, _ = r.Send()
			time.Sleep(20 * time.Minute)
			k.Mono.Store(int64(-20 * time.Minute)) // the machine was suspended, so its monotonic clock did not run
			meanwhile(w)
			return nil, lab.ErrReset
		}))
		ctx := w.Within(time.Hour)
		lab.WantErr(t, "commit", lock.Commit(ctx, lab.Writes(lab.Note("a", "1"))), leasehold.ErrUnknownOutcome)
		lab.WantErr(t, "context", ctx.Err(), nil)
		lab.Want(t, "commits", lab.Commits(wire.Sent()), 1)
		w.WantLog("1")
		_ = lock.Release(t.Context())
	})
}

// slowKeys is a credential provider. It waits for the duration in the field "pause" before it
// returns the next credentials, as if the process had been paused.
type slowKeys struct {
	pause atomic.Int64
}

func (k *slowKeys) Retrieve(context.Context) (aws.Credentials, error) {
	time.Sleep(time.Duration(k.pause.Swap(0)))
	return aws.Credentials{AccessKeyID: "test", SecretAccessKey: "test"}, nil
}

func TestCommitRequestIsNotSentIfSigningTakesElevenMinutes(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		wire, keys := w.Work().Wire(), &slowKeys{}
		cfg := lab.Config()
		cfg.Lease = time.Hour
		c := w.ClientOf(w.Connect(nil, func(o *dynamodb.Options) { o.HTTPClient, o.Credentials = wire, keys }), cfg)
		lock := w.Acquire(c, "job", leasehold.WithoutRenewal())
		wire.Sent()
		wire.SetFault(lab.Once(lab.Call.Commits, func(r *lab.Request) (*http.Response, error) {
			_, _ = r.Send()
			// The next request is delayed by 11 minutes. The delay begins after the token's age is
			// first checked, and ends before the request is signed.
			keys.pause.Store(int64(11 * time.Minute))
			return nil, lab.ErrReset
		}))
		lab.WantErr(t, "commit", lock.Commit(t.Context(), lab.Writes(lab.Note("a", "1"))), leasehold.ErrUnknownOutcome)
		lab.Want(t, "commits", lab.Commits(wire.Sent()), 1)
		w.WantLog("1")

		// The first request of this commit is delayed by 11 minutes before it is signed, and
		// is therefore not sent. The error is definite: nothing was written.
		keys.pause.Store(int64(11 * time.Minute))
		err := lock.Commit(t.Context(), lab.Writes(lab.Note("a", "2")))
		if err == nil || errors.Is(err, leasehold.ErrUnknownOutcome) || lab.Commits(wire.Sent()) != 0 {
			t.Errorf("commit that was never sent: %v", err)
		}
		w.Release(lock)
	})
}

// plain is a wrapper around an SDK client. Its method TransactWriteItems drops the SDK options of
// the call.
type plain struct{ machine.DB }

func (p plain) TransactWriteItems(ctx context.Context, in *dynamodb.TransactWriteItemsInput, _ ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error) {
	return p.DB.TransactWriteItems(ctx, in)
}

func TestCommitSucceedsIfClientWrapperDropsSDKOptions(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		w.Work()
		slowly := w.Wire()
		slowly.SetFault(lab.Script(nil, lab.Slow(2*time.Second)))
		c := w.ClientOf(plain{w.Connect(nil, func(o *dynamodb.Options) { o.HTTPClient = slowly })}, lab.Config())
		lock := w.Acquire(c, "job")
		lab.WantErr(t, "commit", lock.Commit(t.Context(), lab.Writes(lab.Note("a", "1"))), nil)
		// Without the SDK options, the commit does not learn when the SDK has finished reading the
		// caller's values. So Commit waits for the reply, even if the caller's context expires
		// first.
		lab.WantErr(t, "commit", lock.Commit(w.Within(time.Second), lab.Writes(lab.Note("a", "2"))), nil)
		w.WantLog("1", "2")
		w.Release(lock)
	})
}
