package hold_test

import (
	"context"
	"errors"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
)

func TestCommitAndReleaseWakesWaiterWithoutDelay(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, _, lock := w.Work().Holding(lab.Config())
		next := w.Queue(c, "job")
		lab.OK(t, lock.CommitAndRelease(t.Context(), noted("1")))
		began := time.Now()
		w.Release(<-next)
		lab.Want(t, "next holder waited", time.Since(began), 0)
	})
}

func TestCommitAndReleaseHandsOverKeyEvenIfCommitFails(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire, lock := w.Work().Holding(lab.Config())
		next := w.Queue(c, "job")
		wire.Sent()
		lab.WantAs[*leasehold.CommitError](t, "commit", lock.CommitAndRelease(t.Context(), lab.Writes(lab.NoteIf("a", "1"))))
		got := <-next
		if sent := wire.Sent(); len(sent) != 2 || !sent[1].HandsOver() {
			t.Errorf("sent %v", sent)
		}
		w.Release(got)
	})
}

func TestCommitAndReleaseSucceedsDespiteLostReply(t *testing.T) {
	lab.Each(t, map[string][]leasehold.ReleaseOption{
		"record kept": nil, "record deleted": {leasehold.DeleteOnRelease(true)},
	}, func(t *testing.T, w *lab.World, opts []leasehold.ReleaseOption) {
		c, wire, lock := w.Work().Holding(lab.Config())
		wire.SetFault(lab.Script(lab.LoseReply))
		lab.WantErr(t, "commit whose reply is lost", lock.CommitAndRelease(t.Context(), noted("1"), opts...), nil)
		// The next commit is repeated until the caller's context expires. None of its requests gets
		// a reply.
		lock = w.Acquire(c, "job")
		wire.SetFault(lab.Script(lab.Unheard, lab.Unheard, lab.Unheard))
		lab.WantErr(t, "commit without a reply", lock.CommitAndRelease(w.Within(2*time.Second), noted("2"), opts...), leasehold.ErrUnknownOutcome)
		lab.WantErr(t, "second release", lock.Release(t.Context()), nil)
		w.WantLog("1", "2")
	})
}

func TestCommitAndReleaseFreesKeyEvenIfItsArgumentsAreInvalid(t *testing.T) {
	for name, commit := range map[string]func(w *lab.World, h held) error{
		"ended context": func(w *lab.World, h held) error { return h.CommitAndRelease(w.Ended(), noted("1")) },
		"bad write": func(_ *lab.World, h held) error {
			return h.CommitAndRelease(context.Background(), lab.Writes(types.TransactWriteItem{}))
		},
		"bad option": func(_ *lab.World, h held) error {
			bad := leasehold.WithAttributes(map[string]types.AttributeValue{"grantId": lab.Str("x")})
			return h.CommitAndRelease(context.Background(), nil, bad)
		},
	} {
		t.Run(name, func(t *testing.T) {
			lab.Each(t, lockOrGroup, func(t *testing.T, w *lab.World, acquire func(*lab.World, *leasehold.Client) held) {
				c, wire := w.Work().Client(lab.Config())
				lock := acquire(w, c)
				locks := len(c.Held())
				wire.Sent()
				if err := commit(w, lock); err == nil || errors.Is(err, leasehold.ErrUnknownOutcome) {
					t.Errorf("commit: %v", err)
				}
				if sent := wire.Sent(); len(sent) != locks || !sent[0].Releases() {
					t.Errorf("sent %v", lab.Ops(sent))
				}
				lab.Want(t, "held", w.HeldAmong(leasehold.Keys("job", "other")), nil)
				w.WantLog()
			})
		})
	}
}

func TestCommitAndReleaseOfLostLockWritesNothing(t *testing.T) {
	type row struct {
		by     func(w *lab.World)
		reason leasehold.LostReason
	}
	lab.Each(t, map[string]row{
		"granted to other client": {func(w *lab.World) { w.Steal("job") }, leasehold.LostReplaced},
		"deleted":                 {func(w *lab.World) { w.Delete("job") }, leasehold.LostBroken},
		"resumed by other client": {func(w *lab.World) {
			w.Update("job", map[string]types.AttributeValue{"recordVersionNumber": lab.Str("theirs")})
		}, leasehold.LostReplaced},
	}, func(t *testing.T, w *lab.World, end row) {
		_, _, lock := w.Work().Holding(lab.Config())
		end.by(w)
		before := lab.Text(w.Item("job"), "recordVersionNumber")
		err := lock.CommitAndRelease(t.Context(), lab.Writes(lab.Note("a", "stale")))
		if reasonOf(err) != end.reason || errors.Is(err, leasehold.ErrReleased) {
			t.Errorf("commit: %v", err)
		}
		lab.WantErr(t, "second release", lock.Release(t.Context()), leasehold.ErrLost)
		lab.Want(t, "version of the next holder's record", lab.Text(w.Item("job"), "recordVersionNumber"), before)
		w.WantLog()
	})
}

func TestCommitAndReleaseSucceedsUnderContextOfItsOwnLock(t *testing.T) {
	commit := func(ctx context.Context, w *lab.World, h held) error {
		err := h.CommitAndRelease(ctx, noted("1"))
		if !errors.Is(context.Cause(ctx), leasehold.ErrReleased) {
			w.T.Errorf("the context has not ended: %v", context.Cause(ctx))
		}
		return err
	}
	lab.Each(t, map[string]func(w *lab.World, c *leasehold.Client) error{
		"context of lock": func(w *lab.World, c *leasehold.Client) error {
			lock := w.Acquire(c, "job")
			return commit(lock.Context(), w, lock)
		},
		"derived context": func(w *lab.World, c *leasehold.Client) error {
			return c.Do(w.T.Context(), "job", func(ctx context.Context, lock *leasehold.Lock) error {
				ctx, cancel := context.WithTimeout(ctx, time.Minute)
				defer cancel()
				return commit(ctx, w, lock)
			})
		},
		"context of group": func(w *lab.World, c *leasehold.Client) error {
			return w.AcquireAll(c, leasehold.Keys("job", "other")).Do(w.T.Context(), func(ctx context.Context, g *leasehold.Group) error {
				return commit(ctx, w, g)
			})
		},
	}, func(t *testing.T, w *lab.World, do func(*lab.World, *leasehold.Client) error) {
		c, wire := w.Work().Client(lab.Config())
		wire.SetFault(lab.Script(lab.LoseReply))
		lab.WantErr(t, "commit and release", do(w, c), nil)
		w.WantReleased("job")
		w.WantLog("1")
	})
}

func TestCallOfCommitAndReleaseReturnsWhenItsContextEnds(t *testing.T) {
	type row struct {
		bound func(ctx context.Context) (context.Context, context.CancelFunc)
		after time.Duration
	}
	bounds := map[string]row{
		"outer context ends": {func(ctx context.Context) (context.Context, context.CancelFunc) {
			return ctx, func() {}
		}, 5 * time.Second},
		"deadline passes": {func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeout(ctx, 3*time.Second)
		}, 3 * time.Second},
		"separate context ends": {func(context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancel(context.Background())
			time.AfterFunc(3*time.Second, cancel)
			return ctx, cancel
		}, 3 * time.Second},
	}
	type work = func(ctx context.Context, h held) error
	type groupWork = func(ctx context.Context, g *leasehold.Group) error
	ofGroup := func(ctx context.Context, w *lab.World, c *leasehold.Client, fn groupWork) error {
		return w.AcquireAll(c, leasehold.Keys("job", "other")).Do(ctx, fn)
	}
	for what, do := range map[string]func(context.Context, *lab.World, *leasehold.Client, work) error{
		"a lock": func(ctx context.Context, _ *lab.World, c *leasehold.Client, fn work) error {
			return c.Do(ctx, "job", func(ctx context.Context, l *leasehold.Lock) error { return fn(ctx, l) })
		},
		"a group": func(ctx context.Context, w *lab.World, c *leasehold.Client, fn work) error {
			return ofGroup(ctx, w, c, func(ctx context.Context, g *leasehold.Group) error { return fn(ctx, g) })
		},
		"one of a group": func(ctx context.Context, w *lab.World, c *leasehold.Client, fn work) error {
			return ofGroup(ctx, w, c, func(ctx context.Context, g *leasehold.Group) error { return fn(ctx, g.Locks()[0]) })
		},
	} {
		t.Run(what, func(t *testing.T) {
			lab.Each(t, bounds, func(t *testing.T, w *lab.World, tc row) {
				c, wire := w.Work().Client(lab.Config())
				err := do(w.Within(5*time.Second), w, c, func(ctx context.Context, h held) error {
					wire.SetFault(lab.Cut)
					began := time.Now()
					ctx, cancel := tc.bound(ctx)
					defer cancel()
					err := h.CommitAndRelease(ctx, noted("1"))
					lab.Want(t, "returned after", time.Since(began), tc.after)
					return err
				})
				lab.WantErr(t, "do", err, leasehold.ErrUnknownOutcome)
				wire.SetFault(nil)
				lab.Elapse(time.Minute)
			})
		})
	}
}

func TestCommitAndReleaseFailsIfLeaseExpiresDuringEarlierCommit(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		_, wire, lock := w.Work().Holding(lab.Config())
		wire.SetFault(lab.Cut)
		time.AfterFunc(30*time.Second, func() { wire.SetFault(nil) })
		first := lab.Go(func() error { return lock.Commit(t.Context(), noted("1")) })
		// CommitAndRelease waits for the first commit, which takes longer than the lease.
		err := lock.CommitAndRelease(t.Context(), noted("2"))
		lab.Want(t, "reason", reasonOf(err), leasehold.LostExpired)
		lab.WantErr(t, "commit", <-first, nil)
		w.WantLog("1")
		w.WantReleased("job")
	})
}

func TestUnansweredReleaseDoesNotHideCommitError(t *testing.T) {
	says := func(what string) func(error) bool {
		return func(err error) bool { return strings.Contains(err.Error(), what) }
	}
	lost := func(r *lab.Request) (*http.Response, error) {
		codes := slices.Repeat([]string{"None"}, len(r.Parts()))
		codes[1] = "ConditionalCheckFailed"
		return lab.Cancellation(codes...), nil
	}
	for name, tc := range map[string]struct {
		commits lab.Fault // fault that is applied to commits; releases never get a reply
		first   time.Duration
		said    func(error) bool
	}{
		"a write failed":          {(*lab.Request).Send, 0, func(err error) bool { return errors.As(err, new(*leasehold.CommitError)) }},
		"refused":                 {lab.Refused("AccessDeniedException"), 0, says("in table locks: access denied")},
		"throttled until the end": {lab.Refused("ThrottlingException"), 0, says("not committed")},
		"behind another commit":   {lab.Cut, time.Nanosecond, says("nothing was sent")},
		"one of two was lost":     {lost, 0, func(err error) bool { return errors.Is(err, leasehold.ErrLost) }},
	} {
		for what, acquire := range lockOrGroup {
			if name == "one of two was lost" && what == "a lock" {
				continue
			}
			t.Run(name+", "+what, func(t *testing.T) {
				lab.InBubble(t, func(t *testing.T, w *lab.World) {
					c, wire := w.Work().Client(lab.Config())
					lock := acquire(w, c)
					wire.SetFault(func(r *lab.Request) (*http.Response, error) {
						if r.Commits() {
							return tc.commits(r)
						}
						return lab.Cut(r)
					})
					if tc.first > 0 {
						go func() { _ = lock.Commit(t.Context(), noted("1")) }()
						lab.Elapse(tc.first)
					}
					began := time.Now()
					err := lock.CommitAndRelease(w.Within(2500*time.Millisecond), lab.Writes(lab.NoteIf("a", "late")))
					if took := time.Since(began); name != "one of two was lost" && took != 2500*time.Millisecond {
						t.Errorf("returned after %v", took)
					}
					if err == nil || !tc.said(err) || regexp.MustCompile("commit .* in table locks: no answer").MatchString(err.Error()) {
						t.Errorf("error %v", err)
					}
					if tc.first == 0 && !errors.Is(err, context.DeadlineExceeded) {
						t.Errorf("the error does not mention the failed releases: %v", err)
					}
					if what == "a group" && errors.Is(err, leasehold.ErrUnknownOutcome) {
						t.Errorf("unknown outcome, although nothing was written: %v", err)
					}
					w.WantLog()
					wire.SetFault(nil)
					lab.Elapse(time.Minute) // let the requests in flight end
				})
			})
		}
	}
}

func TestCommitAndReleaseFailsIfReleaseOfOtherLockEndsItsContext(t *testing.T) {
	lab.Each(t, map[string]bool{
		"bound to other lock": false, "bound to both locks": true,
	}, func(t *testing.T, w *lab.World, nested bool) {
		c, wire, lock := w.Work().Holding(lab.Config())
		outer := w.Acquire(c, "outer")
		ctx, cancel := outer.Bind(t.Context())
		defer cancel()
		if nested {
			ctx, cancel = lock.Bind(ctx)
			defer cancel()
		}
		wire.SetFault(lab.Respond(lab.Call.Commits, func() *http.Response { return lab.Cancellation("TransactionConflict", "None") }))
		time.AfterFunc(5*time.Second, func() { w.Release(outer) })
		began := time.Now()
		if err := lock.CommitAndRelease(ctx, noted("1")); err == nil || errors.Is(err, leasehold.ErrLost) {
			t.Errorf("error %v", err)
		}
		lab.Want(t, "returned after", time.Since(began), 5*time.Second)
		lab.Elapse(time.Second)
		w.WantReleased("job")
		w.WantLog()
	})
}

// The commit gets no reply. Another client is then granted the key before this client's lease has
// expired. This is possible only if the commit was applied and freed the key, so Release must
// succeed.
func TestReleaseSucceedsIfUnansweredCommitHasFreedKey(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Work().Client(lab.Config())
		other, _ := w.Client(lab.Config())
		lock := w.Acquire(c, "job")
		wire.SetFault(lab.On(lab.Call.Commits, lab.Unheard))
		lab.WantErr(t, "commit without a reply", lock.CommitAndRelease(w.Within(2*time.Second), noted("1")), leasehold.ErrUnknownOutcome)
		next := w.Acquire(other, "job")
		lab.Elapse(10 * time.Second) // let the release that follows the commit be answered
		lab.WantErr(t, "second release", lock.Release(t.Context()), nil)
		w.Release(next)
	})
}
