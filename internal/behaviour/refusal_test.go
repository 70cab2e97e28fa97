package behaviour_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/rwlock"
)

// refusal is an error code of DynamoDB about credentials or permissions. Such an error may
// be temporary.
type refusal struct {
	code   string
	advice string // advice that the error's text must contain
}

var refusals = map[string]refusal{
	"expired":      {"ExpiredTokenException", "the credentials have expired: renew them"},
	"unrecognised": {"UnrecognizedClientException", "the credentials were refused: check them"},
	"denied": {
		"AccessDeniedException", "access denied: allow it in the caller's IAM policy (leasehold table policy --prefix PREFIX prints one)",
	},
}

// blocked contains calls that wait for a key. The function "block" makes one client hold this key.
// The function "wait" then makes the call with another client, which has to wait.
var blocked = map[string]struct {
	block func(w *lab.World, c *leasehold.Client) (unblock func())
	wait  func(ctx context.Context, c *leasehold.Client) error
}{
	"acquire": {blockJob, waits["acquire"]},
	"all":     {blockJob, waits["all"]},
	"any": {func(w *lab.World, c *leasehold.Client) func() {
		job, z := w.Acquire(c, "job"), w.Acquire(c, "z")
		return func() { w.Release(job); w.Release(z) }
	}, waits["any"]},
	"lead": {blockJob, func(ctx context.Context, c *leasehold.Client) error {
		return electionOf(c, "job").Lead(ctx, "", func(context.Context, *leasehold.Lock) error { return nil })
	}},
}

func blockJob(w *lab.World, c *leasehold.Client) func() {
	lock := w.Acquire(c, "job")
	return func() { w.Release(lock) }
}

// granted fails the test unless a waiting call has been granted its key. The call sends its error,
// or nil, to the channel "ended".
func granted(t *testing.T, ended <-chan error) {
	t.Helper()
	select {
	case err := <-ended:
		lab.WantErr(t, "the wait", err, nil)
	default:
		t.Error("the call still waits for a free key")
	}
}

func TestWaitForKeyContinuesAfterAWSRejectsRequest(t *testing.T) {
	for name, b := range blocked {
		t.Run(name, func(t *testing.T) {
			lab.Each(t, refusals, func(t *testing.T, w *lab.World, refused refusal) {
				holder, _ := w.Client(lab.Config())
				unblock := b.block(w, holder)
				c, wire, events := logged(w, lab.Config())
				ended := begin(func() error { return b.wait(t.Context(), c) })
				lab.Elapse(2 * time.Second)
				wire.SetFault(lab.Refused(refused.code))
				lab.Elapse(2 * time.Second)
				wire.SetFault(nil)
				told := events.of(leasehold.EventWaitError)
				if len(told) == 0 || !strings.Contains(told[0].Err.Error(), refused.advice) {
					t.Errorf("wait errors: %v", told)
				}
				lab.Elapse(time.Second)
				unblock()
				lab.Elapse(5 * time.Second)
				granted(t, ended)
				closes(w, c, holder)
			})
		})
	}
}

func TestWaitWithSharedLeaseContinuesAfterAWSRejectsRequests(t *testing.T) {
	lab.Each(t, refusals, func(t *testing.T, w *lab.World, refused refusal) {
		holder, _, lock := w.Holding(lab.SharedConfig())
		c, wire := w.Client(lab.SharedConfig())
		ended := begin(func() error { return lab.ErrorOf(c.Acquire(t.Context(), "job")) })
		lab.Elapse(2 * time.Second)
		wire.SetFault(lab.Refused(refused.code))
		lab.Elapse(30 * time.Second) // long enough for the waiter to lose its session
		w.Release(lock)
		lab.Elapse(2 * time.Second)
		wire.SetFault(nil)
		lab.Elapse(5 * time.Second)
		granted(t, ended)
		closes(w, c, holder)
	})
}

func TestErrorOfTimedOutWaitIncludesLastAWSError(t *testing.T) {
	for name, b := range blocked {
		t.Run(name, func(t *testing.T) {
			lab.Each(t, refusals, func(t *testing.T, w *lab.World, refused refusal) {
				holder, _ := w.Client(lab.Config())
				defer b.block(w, holder)()
				c, wire, events := logged(w, lab.Config())
				time.AfterFunc(2*time.Second, func() { wire.SetFault(lab.Refused(refused.code)) })
				err := b.wait(w.Within(5*time.Minute), c)
				lab.WantErr(t, "the wait", err, context.DeadlineExceeded)
				if name != "lead" && (!errors.Is(err, leasehold.ErrHeld) || !strings.Contains(err.Error(), refused.advice)) { // Lead returns only the cause of its context
					t.Errorf("ended with %v", err)
				}
				lab.WantRange(t, "wait errors reported in five minutes", len(events.of(leasehold.EventWaitError)), 4, 6)
				wire.SetFault(nil)
				_ = c.Close(t.Context())
			})
		})
	}
}

func TestErrorOfTimedOutWaitOmitsOutdatedAWSError(t *testing.T) {
	oneClient(t, func(t *testing.T, w *lab.World, holder *leasehold.Client, _ *lab.Wire) {
		defer blockJob(w, holder)()
		c, wire := w.Client(lab.Config())
		ctx := w.Within(20 * time.Second)
		time.AfterFunc(2*time.Second, func() { wire.SetFault(lab.Refused("ExpiredTokenException")) })
		time.AfterFunc(4*time.Second, func() { wire.SetFault(nil) })
		_, err := c.Acquire(ctx, "job")
		if op := (*leasehold.OpError)(nil); !errors.Is(err, leasehold.ErrHeld) || errors.As(err, &op) {
			t.Errorf("ended with %v", err)
		}
		_ = c.Close(t.Context())
	})
}

func TestAcquireFailsIfAWSRejectsFirstRequest(t *testing.T) {
	refused := func(accepted bool) func(t *testing.T, w *lab.World, refused refusal) {
		return func(t *testing.T, w *lab.World, refused refusal) {
			for name, wait := range waits {
				c, wire := w.Client(lab.Config())
				if accepted {
					w.Release(w.Acquire(c, "other"))
				}
				wire.SetFault(lab.Refused(refused.code))
				began := time.Now()
				err := wait(t.Context(), c)
				if as[*leasehold.OpError](err) == nil || !strings.Contains(err.Error(), refused.advice) || time.Since(began) > time.Second {
					t.Errorf("%s: after %v: %v", name, time.Since(began), err)
				}
				for _, err := range c.Watch(t.Context(), "job") {
					lab.WantText(t, "watch", err, refused.advice)
				}
				_ = c.Close(t.Context())
			}
		}
	}
	t.Run("first of the client", func(t *testing.T) { lab.Each(t, refusals, refused(false)) })
	// In this subtest, DynamoDB has accepted the client's credentials in an earlier call. If DynamoDB
	// refuses the credentials later, the client retries. So the subtest covers only "denied", the one
	// refusal that is not about credentials.
	t.Run("first of the call", func(t *testing.T) {
		lab.Each(t, map[string]refusal{"denied": refusals["denied"]}, refused(true))
	})
}

func TestWaitingGoroutineIsGrantedKeyAfterAWSAllowsAccessAgain(t *testing.T) {
	oneLock(t, func(t *testing.T, w *lab.World, c *leasehold.Client, wire *lab.Wire, lock *leasehold.Lock) {
		// The goroutine waits with the option Once, so the release does not hand the key to it. The
		// goroutine sends a grant itself.
		ended := begin(func() error { return lab.ErrorOf(c.Acquire(t.Context(), "job", leasehold.Once("work"))) })
		lab.Elapse(time.Second)
		wire.SetFault(func(r *lab.Request) (*http.Response, error) {
			if r.Releases() {
				return r.Send()
			}
			return lab.Refused("AccessDeniedException")(r)
		})
		w.Release(lock)
		lab.Elapse(time.Second)
		wire.SetFault(nil)
		lab.Elapse(5 * time.Second)
		granted(t, ended)
		_ = c.Close(t.Context())
	})
}

func TestWatchContinuesAfterAWSRejectsRequests(t *testing.T) {
	lab.Each(t, refusals, func(t *testing.T, w *lab.World, refused refusal) {
		lock := holds(w, "job")
		c, wire, events := logged(w, lab.Config())
		s := startWatch(w, c, "job")
		lab.Elapse(2 * time.Second)
		wire.SetFault(lab.Refused(refused.code))
		lab.Elapse(5 * time.Second)
		if told := events.of(leasehold.EventWaitError); len(told) != 1 || !strings.Contains(told[0].Err.Error(), refused.advice) {
			t.Errorf("wait errors: %v", told)
		}
		lab.Elapse(2 * time.Minute)
		lab.Want(t, "wait errors reported in two minutes", len(events.of(leasehold.EventWaitError)), 3)
		w.Release(lock)
		wire.SetFault(nil)
		lab.Elapse(5 * time.Second)
		if seen, err := s.end(); err != nil || len(seen) != 2 || seen[1].Holder != nil {
			t.Errorf("seen %+v: %v", seen, err)
		}
	})
}

// endedCalls are calls that return because their context is done. The key "held" is held by another
// client. If silent is true, no request gets a reply.
var endedCalls = map[string]struct {
	silent bool
	call   func(ctx context.Context, c *leasehold.Client, lock *leasehold.Lock) error
}{
	"Acquire": {false, func(ctx context.Context, c *leasehold.Client, _ *leasehold.Lock) error {
		return lab.ErrorOf(c.Acquire(ctx, "held"))
	}},
	"Acquire in the local queue": {false, func(ctx context.Context, c *leasehold.Client, lock *leasehold.Lock) error {
		return lab.ErrorOf(c.Acquire(ctx, "job"))
	}},
	"unanswered Acquire": {true, func(ctx context.Context, c *leasehold.Client, _ *leasehold.Lock) error {
		return lab.ErrorOf(c.Acquire(ctx, "free"))
	}},
	"AcquireAll": {false, func(ctx context.Context, c *leasehold.Client, _ *leasehold.Lock) error {
		return lab.ErrorOf(c.AcquireAll(ctx, leasehold.Keys("free", "held")))
	}},
	"AcquireAny": {false, func(ctx context.Context, c *leasehold.Client, _ *leasehold.Lock) error {
		return lab.ErrorOf(c.AcquireAny(ctx, leasehold.Keys("held", "job")))
	}},
	"Client.Do": {false, func(ctx context.Context, c *leasehold.Client, _ *leasehold.Lock) error {
		return c.Do(ctx, "held", func(context.Context, *leasehold.Lock) error { return nil })
	}},
	"reader": {false, func(ctx context.Context, c *leasehold.Client, _ *leasehold.Lock) error {
		rw, err := rwlock.New(c, "rows", 2)
		if err != nil {
			return err
		}
		if _, err := rw.AcquireWrite(context.WithoutCancel(ctx)); err != nil {
			return err
		}
		return lab.ErrorOf(rw.AcquireRead(ctx))
	}},
	"Campaign": {false, func(ctx context.Context, c *leasehold.Client, _ *leasehold.Lock) error {
		return lab.ErrorOf(electionOf(c, "held").Campaign(ctx, ""))
	}},
	"Lead": {false, func(ctx context.Context, c *leasehold.Client, _ *leasehold.Lock) error {
		return electionOf(c, "held").Lead(ctx, "", func(context.Context, *leasehold.Lock) error { return nil })
	}},
	"Renew": {true, func(ctx context.Context, _ *leasehold.Client, lock *leasehold.Lock) error { return lock.Renew(ctx) }},
	"Commit": {true, func(ctx context.Context, _ *leasehold.Client, lock *leasehold.Lock) error {
		return lock.Commit(ctx, nil)
	}},
	"CommitAndRelease": {true, func(ctx context.Context, _ *leasehold.Client, lock *leasehold.Lock) error {
		return lock.CommitAndRelease(ctx, nil)
	}},
	"Read": {true, func(ctx context.Context, _ *leasehold.Client, lock *leasehold.Lock) error {
		return lab.ErrorOf(lock.Read(ctx, nil))
	}},
	"Release": {true, func(ctx context.Context, _ *leasehold.Client, lock *leasehold.Lock) error { return lock.Release(ctx) }},
	"Close":   {true, func(ctx context.Context, c *leasehold.Client, _ *leasehold.Lock) error { return c.Close(ctx) }},
	"Get": {true, func(ctx context.Context, c *leasehold.Client, _ *leasehold.Lock) error {
		return lab.ErrorOf(c.Get(ctx, "job"))
	}},
	"Break": {true, func(ctx context.Context, c *leasehold.Client, lock *leasehold.Lock) error {
		return c.Break(ctx, lock.Record(), leasehold.BreakOptions{})
	}},
	"Resume": {true, func(ctx context.Context, c *leasehold.Client, lock *leasehold.Lock) error {
		g, err := lock.Detach()
		if err != nil {
			return err
		}
		return lab.ErrorOf(c.Resume(ctx, g))
	}},
}

func TestCancelledCallReturnsContextErrorAndCause(t *testing.T) {
	why := errors.New("the shift is over")
	for kind, end := range map[error]func(context.Context, time.Duration) (context.Context, context.CancelFunc){
		context.DeadlineExceeded: func(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
			return context.WithTimeoutCause(ctx, d, why)
		},
		context.Canceled: func(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancelCause(ctx)
			timer := time.AfterFunc(d, func() { cancel(why) })
			return ctx, func() { timer.Stop() }
		},
	} {
		for name, tc := range endedCalls {
			ends := map[string]time.Duration{"meanwhile": 6 * time.Second}
			if !tc.silent {
				ends["before"] = 0
			}
			for when, after := range ends {
				t.Run(name+", "+kind.Error()+", "+when, func(t *testing.T) {
					oneClient(t, func(t *testing.T, w *lab.World, other *leasehold.Client, _ *lab.Wire) {
						w.Acquire(other, "held")
						c, wire, lock := w.Holding(lab.Config())
						if tc.silent {
							wire.SetFault(lab.Drop)
						}
						ctx, cancel := end(t.Context(), after)
						defer cancel()
						synctest.Wait() // let a context with a timeout of zero end first
						err := tc.call(ctx, c, lock)
						lab.WantErr(t, "the call", err, why, kind)
						for _, other := range []error{context.DeadlineExceeded, context.Canceled} {
							if !errors.Is(other, kind) && errors.Is(err, other) {
								t.Errorf("matches %v: %v", other, err)
							}
						}
						wire.SetFault(nil)
						lab.Elapse(time.Minute)
					})
				})
			}
		}
	}
}
