package hold_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
)

func TestCommitAndReleaseLetsNextGoroutineAcquire(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, _ := w.Work().Client(lab.Config())
		lock := w.Acquire(c, "job")
		next := w.Queue(c, "job")
		if err := lock.CommitAndRelease(t.Context(), lab.Writes(lab.Note("a", "1"))); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		w.Release(<-next)
		if waited := time.Since(began); waited != 0 {
			t.Errorf("the next one waited %v", waited)
		}
	})
}

func TestReleaseAfterCommitHandsOverKey(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Work().Client(lab.Config())
		lock := w.Acquire(c, "job")
		next := w.Queue(c, "job")
		wire.Sent()
		var failed *leasehold.CommitError
		if err := lock.CommitAndRelease(t.Context(), lab.Writes(lab.NoteIf("a", "1"))); !errors.As(err, &failed) {
			t.Errorf("commit: %v", err)
		}
		got := <-next
		if sent := wire.Sent(); len(sent) != 2 || !sent[1].HandsOver() {
			t.Errorf("sent %v", sent)
		}
		w.Release(got)
	})
}

func TestCommitAndReleaseWithLostReplyIsRecognised(t *testing.T) {
	for name, opts := range map[string][]leasehold.ReleaseOption{"kept": nil, "deleted": {leasehold.DeleteOnRelease(true)}} {
		t.Run(name, func(t *testing.T) {
			lab.InBubble(t, func(t *testing.T, w *lab.World) {
				c, wire := w.Work().Client(lab.Config())
				lock := w.Acquire(c, "job")
				wire.SetFault(lab.Script(lab.LoseReply))
				if err := lock.CommitAndRelease(t.Context(), lab.Writes(lab.Note("a", "1")), opts...); err != nil {
					t.Errorf("its reply lost: %v", err)
				}
				// No repeated request is answered before the caller's time has run out.
				lock = w.Acquire(c, "job")
				mute := func(r *lab.Request) (*http.Response, error) {
					_, _ = r.Send()
					return lab.Cut(r)
				}
				wire.SetFault(lab.Script(mute, mute, mute))
				ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
				defer cancel()
				if err := lock.CommitAndRelease(ctx, lab.Writes(lab.Note("a", "2")), opts...); !errors.Is(err, leasehold.ErrUnknownOutcome) {
					t.Errorf("never answered: %v", err)
				}
				if err := lock.Release(t.Context()); err != nil {
					t.Errorf("released again: %v", err)
				}
				w.WantLog("1", "2")
			})
		})
	}
}

func TestLockIsReleasedAfterAnyCommitOutcome(t *testing.T) {
	type commit func(context.Context, []types.TransactWriteItem, ...leasehold.ReleaseOption) error
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	for name, call := range map[string]func(commit) error{
		"an ended context": func(commit commit) error { return commit(ended, lab.Writes(lab.Note("a", "1"))) },
		"a bad write": func(commit commit) error {
			return commit(context.Background(), lab.Writes(types.TransactWriteItem{}))
		},
		"a bad option": func(commit commit) error {
			return commit(context.Background(), nil, leasehold.WithAttributes(map[string]types.AttributeValue{"grantId": lab.Str("x")}))
		},
	} {
		for _, keys := range [][]leasehold.Key{leasehold.Keys("job"), leasehold.Keys("job", "other")} {
			t.Run(fmt.Sprintf("%s, %d locks", name, len(keys)), func(t *testing.T) {
				lab.InBubble(t, func(t *testing.T, w *lab.World) {
					c, wire := w.Work().Client(lab.Config())
					g := w.AcquireAll(c, keys)
					commit := g.CommitAndRelease
					if len(keys) == 1 {
						commit = g.Locks()[0].CommitAndRelease
					}
					wire.Sent()
					if err := call(commit); err == nil || errors.Is(err, leasehold.ErrUnknownOutcome) {
						t.Errorf("commit: %v", err)
					}
					if sent := wire.Sent(); len(sent) != len(keys) || !sent[0].Releases() {
						t.Errorf("sent %v", lab.Ops(sent))
					}
					if held := w.HeldAmong(keys); len(held) > 0 {
						t.Errorf("left held: %v", held)
					}
					w.WantLog()
				})
			})
		}
	}
}

func TestCommitAndReleaseOfLostLockWritesNothing(t *testing.T) {
	for name, end := range map[string]struct {
		by     func(w *lab.World)
		reason leasehold.LostReason
	}{
		"granted to another": {func(w *lab.World) { w.Steal("job") }, leasehold.LostReplaced},
		"deleted":            {func(w *lab.World) { w.Delete("job") }, leasehold.LostBroken},
		"resumed by somebody": {func(w *lab.World) {
			w.Update("job", map[string]types.AttributeValue{"recordVersionNumber": lab.Str("theirs")})
		}, leasehold.LostReplaced},
	} {
		t.Run(name, func(t *testing.T) {
			lab.InBubble(t, func(t *testing.T, w *lab.World) {
				c, _ := w.Work().Client(lab.Config())
				lock := w.Acquire(c, "job")
				end.by(w)
				before := lab.Text(w.Item("job"), "recordVersionNumber")
				err := lock.CommitAndRelease(t.Context(), lab.Writes(lab.Note("a", "stale")))
				var lost *leasehold.LostError
				if !errors.As(err, &lost) || lost.Reason != end.reason || errors.Is(err, leasehold.ErrReleased) {
					t.Errorf("commit: %v", err)
				}
				if err := lock.Release(t.Context()); !errors.Is(err, leasehold.ErrLost) {
					t.Errorf("released again: %v", err)
				}
				if lab.Text(w.Item("job"), "recordVersionNumber") != before {
					t.Error("another's record was written to")
				}
				w.WantLog()
			})
		})
	}
}

func TestCommitAndReleaseWaitsForOtherCommits(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Work().Client(lab.Config())
		lock := w.Acquire(c, "job")
		wire.SetFault(lab.Script(lab.Slow(time.Second)))
		first := make(chan error, 1)
		go func() { first <- lock.Commit(t.Context(), lab.Writes(lab.Note("a", "1"))) }()
		synctest.Wait()
		wire.SetFault(nil)
		began := time.Now()
		if err := lock.CommitAndRelease(t.Context(), lab.Writes(lab.Note("a", "2"))); err != nil {
			t.Errorf("commit and release: %v", err)
		}
		if took := time.Since(began); took != time.Second {
			t.Errorf("waited %v", took)
		}
		if err := <-first; err != nil {
			t.Errorf("commit: %v", err)
		}
		w.WantLog("1", "2")
	})
}

func TestCommitAndReleaseOfSharedGrantReleasesOnlyOneHandle(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, _ := w.Work().Client(lab.Config())
		outer := w.Acquire(c, "job")
		inner, err := c.Acquire(outer.Context(), "job", leasehold.Reentrant())
		if err != nil {
			t.Fatal(err)
		}
		if err := inner.CommitAndRelease(t.Context(), lab.Writes(lab.Note("a", "1"))); err != nil {
			t.Fatal(err)
		}
		if !errors.Is(inner.Err(), leasehold.ErrReleased) || outer.Err() != nil {
			t.Errorf("inner: %v, outer: %v", inner.Err(), outer.Err())
		}
		if err := outer.CommitAndRelease(t.Context(), lab.Writes(lab.Note("a", "2"))); err != nil {
			t.Fatal(err)
		}
		w.WantLog("1", "2")
		if lab.Text(w.Item("job"), "isReleased") != "1" {
			t.Error("the key is not free")
		}
	})
}

func TestCommitAndReleaseContinuesAfterContextOfLockEnds(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Work().Client(lab.Config())
		wire.SetFault(lab.Script(lab.LoseReply))
		err := c.Do(t.Context(), "job", func(ctx context.Context, lock *leasehold.Lock) error {
			ctx, cancel := context.WithTimeout(ctx, time.Minute) // a context derived from the lock's has the same cause
			defer cancel()
			err := lock.CommitAndRelease(ctx, lab.Writes(lab.Note("a", "1")))
			if !errors.Is(context.Cause(ctx), leasehold.ErrReleased) {
				t.Errorf("the function's context goes on: %v", context.Cause(ctx))
			}
			return err
		})
		if err != nil {
			t.Errorf("do: %v", err)
		}
		w.WantLog("1")
	})
}

func TestCommitAndReleaseAcceptsContextOfSameLock(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Work().Client(lab.Config())
		lock := w.Acquire(c, "job")
		wire.SetFault(lab.Script(lab.LoseReply))
		if err := lock.CommitAndRelease(lock.Context(), lab.Writes(lab.Note("a", "1"))); err != nil {
			t.Errorf("error %v", err)
		}
		w.WantLog("1")
		if !w.IsReleased("job") {
			t.Error("the key is not free")
		}
	})
}

func TestCommitAndReleaseReturnsWhenCallersContextEnds(t *testing.T) {
	for name, bound := range map[string]func(ctx context.Context) (context.Context, context.CancelFunc){
		"cancelled outside": func(ctx context.Context) (context.Context, context.CancelFunc) {
			return ctx, func() {}
		},
		"a deadline inside": func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeout(ctx, 3*time.Second)
		},
		"one of its own is cancelled": func(context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancel(context.Background())
			time.AfterFunc(3*time.Second, cancel)
			return ctx, cancel
		},
	} {
		t.Run(name, func(t *testing.T) {
			lab.InBubble(t, func(t *testing.T, w *lab.World) {
				c, wire := w.Work().Client(lab.Config())
				outer, cancel := context.WithCancel(t.Context())
				defer cancel()
				time.AfterFunc(5*time.Second, cancel)
				err := c.Do(outer, "job", func(ctx context.Context, lock *leasehold.Lock) error {
					wire.SetFault(lab.Cut)
					began := time.Now()
					ctx, cancel := bound(ctx)
					defer cancel()
					err := lock.CommitAndRelease(ctx, lab.Writes(lab.Note("a", "1")))
					want := 3 * time.Second
					if name == "cancelled outside" {
						want = 5 * time.Second
					}
					if took := time.Since(began); took != want {
						t.Errorf("returned after %v, want %v", took, want)
					}
					return err
				})
				if !errors.Is(err, leasehold.ErrUnknownOutcome) {
					t.Errorf("do: %v", err)
				}
				wire.SetFault(nil)
				lab.Elapse(time.Minute)
			})
		})
	}
}

func TestCommitAndReleaseIsNotSentAfterLeaseExpired(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Work().Client(lab.Config())
		lock := w.Acquire(c, "job")
		wire.SetFault(lab.Cut)
		time.AfterFunc(30*time.Second, func() { wire.SetFault(nil) })
		first := make(chan error, 1)
		go func() { first <- lock.Commit(t.Context(), lab.Writes(lab.Note("a", "1"))) }()
		synctest.Wait()
		// This call waits for a commit that takes longer than the lease.
		err := lock.CommitAndRelease(t.Context(), lab.Writes(lab.Note("a", "2")))
		var lost *leasehold.LostError
		if !errors.As(err, &lost) || lost.Reason != leasehold.LostExpired {
			t.Errorf("commit and release: %v", err)
		}
		if err := <-first; err != nil {
			t.Errorf("commit: %v", err)
		}
		w.WantLog("1")
		if lab.Text(w.Item("job"), "isReleased") != "1" {
			t.Error("the key is not free")
		}
	})
}

func TestFailedCommitIsDefiniteEvenIfReleaseIsUnknown(t *testing.T) {
	var failed *leasehold.CommitError
	for name, tc := range map[string]struct {
		commits lab.Fault // outcome of the commits; releases are never answered
		first   time.Duration
		said    func(error) bool
	}{
		"a write failed": {(*lab.Request).Send, 0, func(err error) bool { return errors.As(err, &failed) }},
		"refused": {lab.Answer(func() *http.Response { return lab.Refusal(400, "AccessDeniedException") }), 0,
			func(err error) bool { return strings.Contains(err.Error(), "commit job in table locks: access denied") }},
		"throttled until the end": {lab.Answer(func() *http.Response { return lab.Refusal(400, "ThrottlingException") }), 0,
			func(err error) bool { return strings.Contains(err.Error(), "not committed") }},
		"behind another commit": {lab.Cut, time.Nanosecond, func(err error) bool { return strings.Contains(err.Error(), "nothing was sent") }},
	} {
		t.Run(name, func(t *testing.T) {
			lab.InBubble(t, func(t *testing.T, w *lab.World) {
				c, wire := w.Work().Client(lab.Config())
				lock := w.Acquire(c, "job")
				wire.SetFault(func(r *lab.Request) (*http.Response, error) {
					if r.Commits() {
						return tc.commits(r)
					}
					return lab.Cut(r)
				})
				if tc.first > 0 {
					go func() { _ = lock.Commit(t.Context(), lab.Writes(lab.Note("a", "1"))) }()
					lab.Elapse(tc.first)
				}
				ctx, cancel := context.WithTimeout(t.Context(), 2500*time.Millisecond)
				defer cancel()
				began := time.Now()
				err := lock.CommitAndRelease(ctx, lab.Writes(lab.NoteIf("a", "late")))
				if took := time.Since(began); took != 2500*time.Millisecond {
					t.Errorf("returned after %v", took)
				}
				if !tc.said(err) || strings.Contains(err.Error(), "commit job in table locks: no answer") {
					t.Errorf("error %v", err)
				}
				wire.SetFault(nil)
				lab.Elapse(time.Minute)
			})
		})
	}
}

func TestCommitAndReleaseReturnsWhenLockOfContextEnds(t *testing.T) {
	for _, nested := range []bool{false, true} {
		t.Run(fmt.Sprintf("bound to its own lock too: %v", nested), func(t *testing.T) {
			lab.InBubble(t, func(t *testing.T, w *lab.World) {
				c, wire := w.Work().Client(lab.Config())
				outer, lock := w.Acquire(c, "outer"), w.Acquire(c, "job")
				ctx, cancel := outer.Bind(t.Context())
				defer cancel()
				if nested {
					ctx, cancel = lock.Bind(ctx)
					defer cancel()
				}
				wire.SetFault(lab.Respond(lab.Call.Commits, func() *http.Response { return lab.Cancellation("TransactionConflict", "None") }))
				time.AfterFunc(5*time.Second, func() { w.Release(outer) })
				began := time.Now()
				if err := lock.CommitAndRelease(ctx, lab.Writes(lab.Note("a", "1"))); err == nil || errors.Is(err, leasehold.ErrLost) {
					t.Errorf("error %v", err)
				}
				if took := time.Since(began); took != 5*time.Second {
					t.Errorf("returned after %v", took)
				}
				lab.Elapse(time.Second)
				if !w.IsReleased("job") {
					t.Error("the key is not free")
				}
				w.WantLog()
			})
		})
	}
}

// While the lease lasted, no other client could be granted the key before the commit had
// freed it. So another client's grant shows that the commit was applied.
func TestNextGrantProvesUnansweredCommitAndRelease(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Work().Client(lab.Config())
		other, _ := w.Client(lab.Config())
		lock := w.Acquire(c, "job")
		wire.SetFault(func(r *lab.Request) (*http.Response, error) {
			if r.Commits() {
				_, _ = r.Send()
				return lab.Cut(r)
			}
			return r.Send()
		})
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		if err := lock.CommitAndRelease(ctx, lab.Writes(lab.Note("a", "1"))); !errors.Is(err, leasehold.ErrUnknownOutcome) {
			t.Errorf("never answered: %v", err)
		}
		next := w.Acquire(other, "job")
		lab.Elapse(10 * time.Second) // long enough for the release after the commit to be answered
		if err := lock.Release(t.Context()); err != nil {
			t.Errorf("released again: %v", err)
		}
		w.Release(next)
	})
}
