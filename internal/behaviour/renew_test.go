package behaviour_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/leasehold-go/leasehold/internal/lab"
)

func TestRenewSurvivesOneLostReply(t *testing.T) { // in dynamolock, awslabs and python_dynamodb_lock, heartbeats stop permanently after one lost reply
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.Config())
		lock := w.Acquire(c, "job")
		wire.SetFault(lab.Once(lab.Call.Renews, lab.LoseReply))
		lab.Elapse(2 * time.Minute)
		if err := lock.Err(); err != nil {
			t.Fatalf("lost: %v", err)
		}
		if lock.Record().Version != lab.Text(w.Item("job"), "recordVersionNumber") {
			t.Error("the client does not know its own version")
		}
		w.Release(lock)
	})
}

func TestRenewalsContinueAfterFailures(t *testing.T) { // python_dynamodb_lock never heartbeats again after "in danger"
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.Config())
		lock := w.Acquire(c, "job")
		for range 5 {
			wire.SetFault(lab.Cut)
			lab.Elapse(11 * time.Second)
			wire.SetFault(nil)
			lab.Elapse(6 * time.Second)
			if err := lock.Err(); err != nil {
				t.Fatalf("lost: %v", err)
			}
		}
		w.Release(lock)
	})
}

func TestRenewalIsNotSentAfterTrustHasEnded(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.Config())
		lock := w.Acquire(c, "job")
		ended := make(chan struct{})
		context.AfterFunc(lock.Context(), func() { close(ended) })
		wire.SetFault(func(r *lab.Request) (*http.Response, error) {
			select {
			case <-ended:
				if r.Renews() {
					t.Errorf("renewed after the end")
				}
			default:
			}
			return lab.Refusal(500, "InternalServerError"), nil
		})
		lab.Elapse(5 * time.Minute)
		_ = lock.Release(t.Context())
	})
}
