package attempts

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

var errBefore, errAfter = errors.New("throttled"), errors.New("closed")

// sentBy is a write in progress. If answered is set, DynamoDB has answered all requests of
// the write; otherwise none.
type sentBy struct{ answered bool }

func (s sentBy) Answered() bool { return s.answered }
func (s sentBy) LastErr() error { return errBefore }

func TestAwaitReturnsResultThatArrivesAtDeadline(t *testing.T) {
	done := make(chan struct{})
	close(done)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for range 100 {
		if err := Await(ended, done, sentBy{answered: false}); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAwaitOutlastsContextIfRequestsWereAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		done := make(chan struct{})
		time.AfterFunc(2*time.Second, func() { close(done) })
		began := time.Now()
		if err := Await(ctx, done, sentBy{answered: true}); err != nil || time.Since(began) != 2*time.Second {
			t.Errorf("%v after %v", err, time.Since(began))
		}
	})
}

func TestAwaitEndsWithContextIfNoRequestWasAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, errAfter)
		defer cancel()
		began := time.Now()
		err := Await(ctx, nil, sentBy{answered: false})
		if !errors.Is(err, errAfter) || !errors.Is(err, errBefore) || time.Since(began) != time.Second {
			t.Errorf("%v after %v", err, time.Since(began))
		}
	})
}
