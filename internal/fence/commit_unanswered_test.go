package fence_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"

	"net/http"
	"testing"
	"time"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
)

// applied returns a fault that applies the request and answers as the given fault does.
func applied(answer lab.Fault) lab.Fault {
	return func(r *lab.Request) (*http.Response, error) {
		_, _ = r.Send()
		return answer(r)
	}
}

func TestCommitWithLostReplyIsAppliedOnce(t *testing.T) {
	lab.Each(t, map[string]lab.Fault{
		"reset":        lab.LoseReply,
		"silence":      lab.Unheard,
		"server error": applied(lab.Out),
		"in progress":  applied(lab.Refused("TransactionInProgressException")),
	}, func(t *testing.T, w *lab.World, fault lab.Fault) {
		_, wire, lock := w.Work().Holding(lab.Config())
		wire.Sent()
		wire.SetFault(lab.Script(fault, fault, fault))
		if err := lock.Commit(t.Context(), lab.Writes(lab.Note("a", "1"), lab.Note("b", "1"))); err != nil {
			t.Fatal(err)
		}
		w.WantLog("1")
		var bodies [][]byte
		for _, c := range wire.Sent() {
			if c.Commits() {
				bodies = append(bodies, c.Body)
			}
		}
		// Equal bytes show that the requests have the same token, and list the
		// members of every map in the same order.
		if len(bodies) != 4 {
			t.Errorf("%d requests", len(bodies))
		}
		for _, b := range bodies {
			if !bytes.Equal(b, bodies[0]) {
				t.Errorf("a request was repeated as\n%s\nafter\n%s", b, bodies[0])
			}
		}
		w.Release(lock)
	})
}

func TestUnansweredCommitIsSettledAfterEndOfTrust(t *testing.T) {
	lab.Each(t, map[string]bool{"landed": true, "not landed": false}, func(t *testing.T, w *lab.World, landed bool) {
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
			t.Errorf("it landed: %v", err)
		case !landed && !errors.Is(err, leasehold.ErrLost):
			t.Errorf("it never lands: %v", err)
		}
		if got := len(w.Log("a")); landed != (got == 1) {
			t.Errorf("written %d times", got)
		}
		w.Release(next)
	})
}

func TestCommitCancelledWithoutReplyReturnsUnknownOutcome(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		_, wire, lock := w.Work().Holding(lab.Config())
		wire.SetFault(lab.Script(lab.Slow(2 * time.Second)))
		ctx := w.Within(time.Second)
		began := time.Now()
		values := lab.Note("a", "1")
		err := lock.Commit(ctx, lab.Writes(values))
		values.Update.ExpressionAttributeNames["#x"] = "the caller's again"
		if took := time.Since(began); took != time.Second {
			t.Errorf("returned after %v", took)
		}
		if !errors.Is(err, leasehold.ErrUnknownOutcome) || errors.As(err, new(*leasehold.CommitError)) || errors.Is(err, leasehold.ErrLost) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("commit: %v", err)
		}
		if lock.Err() != nil {
			t.Errorf("lock: %v", lock.Err())
		}
		lab.Elapse(2 * time.Second)
		w.WantLog("1")
		w.Release(lock)
	})
}

func TestCommitGivesUpFiveMinutesAfterFirstRequest(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		_, wire, lock := w.Work().Holding(lab.Config())
		wire.SetFault(lab.On(lab.Call.Commits, lab.Cut))
		began := time.Now()
		err := lock.Commit(t.Context(), lab.Writes(lab.Note("a", "1")))
		took := time.Since(began)
		if took < 5*time.Minute || took > 5*time.Minute+5*time.Second || !errors.Is(err, leasehold.ErrUnknownOutcome) {
			t.Errorf("gave up after %v: %v", took, err)
		}
		wire.SetFault(nil)
		w.Release(lock)
	})
}

func TestCommitRetriesConflictsAndThrottlingWithSameToken(t *testing.T) {
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
		if err := lock.Commit(t.Context(), lab.Writes(lab.Note("a", "1"))); err != nil {
			t.Fatal(err)
		}
		tokens := map[string]bool{}
		for _, c := range wire.Sent() {
			var in struct{ ClientRequestToken string }
			if c.Commits() && json.Unmarshal(c.Body, &in) == nil {
				tokens[in.ClientRequestToken] = true
			}
		}
		if len(tokens) != 1 || throttled != 6 {
			t.Errorf("%d tokens, %d events", len(tokens), throttled)
		}
		w.WantLog("1")
		w.Release(lock)
	})
}

// The first request arrives before the request with only the guards can use up the token.
func TestCommitSucceedsIfEarlierRequestIsAppliedLate(t *testing.T) {
	lab.Each(t, map[string][]lab.Fault{
		"answered":           {nil},
		"lost reply":         {nil, lab.LoseReply},
		"voiding goes lost":  {lab.Cut, nil, nil},
		"reading goes busy":  {nil, lab.Refused("ThrottlingException")},
		"voiding is refused": {lab.Refused("TransactionInProgressException"), nil},
	}, func(t *testing.T, w *lab.World, then []lab.Fault) {
		_, wire, lock := w.Work().Holding(lab.Config())
		var lost func() (*http.Response, error)
		faults := []lab.Fault{
			func(r *lab.Request) (*http.Response, error) {
				lost = r.Send
				return nil, lab.ErrReset
			},
			func(r *lab.Request) (*http.Response, error) {
				res, err := r.Send() // this attempt fails
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
