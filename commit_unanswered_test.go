package leasehold_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"

	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/leasehold-go/leasehold"
)

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
