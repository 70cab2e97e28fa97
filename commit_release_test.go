package leasehold_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold"
)

func TestACommitThatReleasesIsOneRequest(t *testing.T) {
	for name, tc := range map[string]struct {
		opts    []leasehold.ReleaseOption
		deleted bool
		data    string
	}{
		"kept":      {nil, false, "before"},
		"with data": {[]leasehold.ReleaseOption{leasehold.WithData([]byte("after"))}, false, "after"},
		"deleted":   {[]leasehold.ReleaseOption{leasehold.DeleteOnRelease()}, true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				var kinds []leasehold.EventKind
				cfg := config()
				cfg.OnEvent = func(_ context.Context, e leasehold.Event) { kinds = append(kinds, e.Kind) }
				c, wire := w.work().client(cfg)
				lock := w.acquire(c, "job", leasehold.WithData([]byte("before")))
				wire.sent()
				kinds = nil
				wire.setFault(once(call.commits, func(_ context.Context, _ call, next func() (*http.Response, error)) (*http.Response, error) {
					if !errors.Is(lock.Err(), leasehold.ErrReleased) {
						t.Errorf("when it was sent: %v", lock.Err())
					}
					return next()
				}))
				if err := lock.CommitAndRelease(t.Context(), writes(note("a", "1")), tc.opts...); err != nil {
					t.Fatal(err)
				}
				if sent := wire.sent(); len(sent) != 1 || !sent[0].commits() {
					t.Errorf("sent %v", sent)
				}
				w.wantLog("1")
				item := w.item("job")
				if tc.deleted != (item == nil) || !tc.deleted && textOf(item, "isReleased") != "1" {
					t.Errorf("the record is %v", item)
				}
				if data, ok := item["data"].(*types.AttributeValueMemberB); ok && string(data.Value) != tc.data {
					t.Errorf("data %q", data.Value)
				}
				if len(kinds) != 2 || kinds[0] != leasehold.EventCommitted || kinds[1] != leasehold.EventReleased {
					t.Errorf("events %v", kinds)
				}
				if err := lock.Release(t.Context()); err != nil {
					t.Errorf("released again: %v", err)
				}
				if err := lock.CommitAndRelease(t.Context(), nil); !errors.Is(err, leasehold.ErrReleased) {
					t.Errorf("committed again: %v", err)
				}
				if n := len(wire.sent()); n != 0 {
					t.Errorf("%d requests after that", n)
				}
			})
		})
	}
}

func TestACommitThatReleasesGivesTheNextInLineItsTurn(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		c, _ := w.work().client(config())
		lock := w.acquire(c, "job")
		next := make(chan *leasehold.Lock, 1)
		go func() { next <- w.acquire(c, "job") }()
		synctest.Wait()
		if err := lock.CommitAndRelease(t.Context(), writes(note("a", "1"))); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		w.release(<-next)
		if waited := time.Since(began); waited != 0 {
			t.Errorf("the next one waited %v", waited)
		}
	})
}

func TestACommitThatDidNotLandIsFollowedByAPlainRelease(t *testing.T) {
	type faults = []func(context.Context, call, func() (*http.Response, error)) (*http.Response, error)
	for name, tc := range map[string]struct {
		faults faults
		check  func(error) bool
	}{
		"a write failed": {nil, func(err error) bool {
			var failed *leasehold.CommitError
			return errors.As(err, &failed) && len(failed.Reasons) == 1
		}},
		"a write failed behind a lost request": {faults{delayed(time.Minute)}, func(err error) bool {
			var failed *leasehold.CommitError
			return errors.As(err, &failed)
		}},
		"refused": {faults{answer(func() *http.Response { return refusal(400, "AccessDeniedException") })}, func(err error) bool {
			var op *leasehold.OpError
			return errors.As(err, &op) && op.Op == "commit"
		}},
		"unknown": {faults{delayed(time.Minute), answer(func() *http.Response { return refusal(400, "AccessDeniedException") })}, func(err error) bool {
			return errors.Is(err, leasehold.ErrUnknownOutcome)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				c, wire := w.work().client(config())
				lock := w.acquire(c, "job")
				wire.setFault(script(tc.faults...))
				err := lock.CommitAndRelease(t.Context(), writes(noteIf("a", "late")))
				if !tc.check(err) || errors.Is(err, leasehold.ErrLost) {
					t.Errorf("commit: %v", err)
				}
				if textOf(w.item("job"), "isReleased") != "1" {
					t.Error("the key is not free")
				}
				if err := lock.Release(t.Context()); err != nil {
					t.Errorf("released again: %v", err)
				}
				w.open("a")
				elapse(2 * time.Minute)
				w.wantLog()
			})
		})
	}
}

func TestThePlainReleaseAfterACommitHandsTheKeyOver(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		c, wire := w.work().client(config())
		lock := w.acquire(c, "job")
		next := make(chan *leasehold.Lock, 1)
		go func() { next <- w.acquire(c, "job") }()
		synctest.Wait()
		wire.sent()
		var failed *leasehold.CommitError
		if err := lock.CommitAndRelease(t.Context(), writes(noteIf("a", "1"))); !errors.As(err, &failed) {
			t.Errorf("commit: %v", err)
		}
		got := <-next
		if sent := wire.sent(); len(sent) != 2 || !sent[1].handsOver() {
			t.Errorf("sent %v", sent)
		}
		w.release(got)
	})
}

func TestACommitThatReleasedUnseenIsRecognised(t *testing.T) {
	for name, opts := range map[string][]leasehold.ReleaseOption{"kept": nil, "deleted": {leasehold.DeleteOnRelease()}} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				c, wire := w.work().client(config())
				lock := w.acquire(c, "job")
				wire.setFault(script(loseReply))
				if err := lock.CommitAndRelease(t.Context(), writes(note("a", "1")), opts...); err != nil {
					t.Errorf("its reply lost: %v", err)
				}
				// Nor is it answered when it is asked again, while its caller has time.
				lock = w.acquire(c, "job")
				mute := func(ctx context.Context, _ call, next func() (*http.Response, error)) (*http.Response, error) {
					_, _ = next()
					return hang(ctx)
				}
				wire.setFault(script(mute, mute, mute))
				ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
				defer cancel()
				if err := lock.CommitAndRelease(ctx, writes(note("a", "2")), opts...); !errors.Is(err, leasehold.ErrUnknownOutcome) {
					t.Errorf("never answered: %v", err)
				}
				if err := lock.Release(t.Context()); err != nil {
					t.Errorf("released again: %v", err)
				}
				w.wantLog("1", "2")
			})
		})
	}
}

func TestALockIsGivenUpWhateverItsLastCommitComesTo(t *testing.T) {
	type commit func(context.Context, []types.TransactWriteItem, ...leasehold.ReleaseOption) error
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	for name, call := range map[string]func(commit) error{
		"an ended context": func(commit commit) error { return commit(ended, writes(note("a", "1"))) },
		"a bad write": func(commit commit) error {
			return commit(context.Background(), writes(types.TransactWriteItem{}))
		},
		"a bad option": func(commit commit) error {
			return commit(context.Background(), nil, leasehold.WithAttributes(map[string]types.AttributeValue{"grantId": str("x")}))
		},
	} {
		for _, keys := range [][]leasehold.Key{leasehold.Keys("job"), leasehold.Keys("job", "other")} {
			t.Run(fmt.Sprintf("%s, %d locks", name, len(keys)), func(t *testing.T) {
				inBubble(t, func(t *testing.T, w *world) {
					c, wire := w.work().client(config())
					g := w.acquireAll(c, keys)
					commit := g.CommitAndRelease
					if len(keys) == 1 {
						commit = g.Locks()[0].CommitAndRelease
					}
					wire.sent()
					if err := call(commit); err == nil || errors.Is(err, leasehold.ErrUnknownOutcome) {
						t.Errorf("commit: %v", err)
					}
					if sent := wire.sent(); len(sent) != 1 || !sent[0].releases() {
						t.Errorf("sent %v", sent)
					}
					if held := w.held(keys); len(held) > 0 {
						t.Errorf("left held: %v", held)
					}
					w.wantLog()
				})
			})
		}
	}
}

func TestACommitThatReleasesALostLockWritesNothing(t *testing.T) {
	for name, end := range map[string]func(w *world){
		"granted to another":  func(w *world) { w.steal("job") },
		"deleted":             func(w *world) { w.delete("job") },
		"resumed by somebody": func(w *world) { w.update("job", map[string]types.AttributeValue{"recordVersionNumber": str("theirs")}) },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				c, _ := w.work().client(config())
				lock := w.acquire(c, "job")
				end(w)
				before := textOf(w.item("job"), "recordVersionNumber")
				err := lock.CommitAndRelease(t.Context(), writes(note("a", "stale")))
				if !errors.Is(err, leasehold.ErrLost) || errors.Is(err, leasehold.ErrReleased) {
					t.Errorf("commit: %v", err)
				}
				if err := lock.Release(t.Context()); !errors.Is(err, leasehold.ErrLost) {
					t.Errorf("released again: %v", err)
				}
				if textOf(w.item("job"), "recordVersionNumber") != before {
					t.Error("another's record was written to")
				}
				w.wantLog()
			})
		})
	}
}

func TestACommitThatReleasesIsRepeatedWhileTheLockWouldBeTrusted(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		c, wire := w.work().client(config())
		lock := w.acquire(c, "job")
		wire.setFault(respond(call.commits, func() *http.Response { return cancellation("TransactionConflict", "None") }))
		began := time.Now()
		err := lock.CommitAndRelease(t.Context(), writes(note("a", "1")))
		if took := time.Since(began); took < 17*time.Second || took > 20*time.Second {
			t.Errorf("gave up after %v", took)
		}
		if !errors.Is(err, leasehold.ErrLost) || errors.Is(err, leasehold.ErrUnknownOutcome) {
			t.Errorf("commit: %v", err)
		}
		w.wantLog()
	})
}

func TestACommitThatReleasesWaitsForOtherCommits(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		c, wire := w.work().client(config())
		lock := w.acquire(c, "job")
		wire.setFault(script(slow(time.Second)))
		first := make(chan error, 1)
		go func() { first <- lock.Commit(t.Context(), writes(note("a", "1"))) }()
		synctest.Wait()
		wire.setFault(nil)
		began := time.Now()
		if err := lock.CommitAndRelease(t.Context(), writes(note("a", "2"))); err != nil {
			t.Errorf("commit and release: %v", err)
		}
		if took := time.Since(began); took != time.Second {
			t.Errorf("waited %v", took)
		}
		if err := <-first; err != nil {
			t.Errorf("commit: %v", err)
		}
		w.wantLog("1", "2")
	})
}

func TestACommitThatReleasesASharedGrantReleasesItsHandle(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		c, _ := w.work().client(config())
		outer := w.acquire(c, "job")
		inner, err := c.Acquire(outer.Context(), "job", leasehold.Reentrant())
		if err != nil {
			t.Fatal(err)
		}
		if err := inner.CommitAndRelease(t.Context(), writes(note("a", "1"))); err != nil {
			t.Fatal(err)
		}
		if !errors.Is(inner.Err(), leasehold.ErrReleased) || outer.Err() != nil {
			t.Errorf("inner: %v, outer: %v", inner.Err(), outer.Err())
		}
		if err := outer.CommitAndRelease(t.Context(), writes(note("a", "2"))); err != nil {
			t.Fatal(err)
		}
		w.wantLog("1", "2")
		if textOf(w.item("job"), "isReleased") != "1" {
			t.Error("the key is not free")
		}
	})
}

func TestACommitThatReleasesIsNotCutShortByTheEndOfTheLock(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		c, wire := w.work().client(config())
		wire.setFault(script(loseReply))
		err := c.Do(t.Context(), "job", func(ctx context.Context, lock *leasehold.Lock) error {
			ctx, cancel := context.WithTimeout(ctx, time.Minute) // of a context bound to the lock
			defer cancel()
			err := lock.CommitAndRelease(ctx, writes(note("a", "1")))
			if !errors.Is(context.Cause(ctx), leasehold.ErrReleased) {
				t.Errorf("the function's context goes on: %v", context.Cause(ctx))
			}
			return err
		})
		if err != nil {
			t.Errorf("do: %v", err)
		}
		w.wantLog("1")
	})
}

func TestACommitThatReleasesStillEndsWithItsCallersContext(t *testing.T) {
	for name, bound := range map[string]func(ctx context.Context) (context.Context, context.CancelFunc){
		"cancelled outside": func(ctx context.Context) (context.Context, context.CancelFunc) {
			return ctx, func() {}
		},
		"a deadline inside": func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeout(ctx, 3*time.Second)
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				c, wire := w.work().client(config())
				outer, cancel := context.WithCancel(t.Context())
				defer cancel()
				time.AfterFunc(5*time.Second, cancel)
				err := c.Do(outer, "job", func(ctx context.Context, lock *leasehold.Lock) error {
					wire.setFault(cut)
					began := time.Now()
					ctx, cancel := bound(ctx)
					defer cancel()
					err := lock.CommitAndRelease(ctx, writes(note("a", "1")))
					want := 5 * time.Second
					if name == "a deadline inside" {
						want = 3 * time.Second
					}
					if took := time.Since(began); took != want {
						t.Errorf("returned after %v, want %v", took, want)
					}
					return err
				})
				if !errors.Is(err, leasehold.ErrUnknownOutcome) {
					t.Errorf("do: %v", err)
				}
				wire.setFault(nil)
				elapse(time.Minute)
			})
		})
	}
}

func TestACommitThatReleasesIsNotSentOnceTheLeaseHasRunOut(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		c, wire := w.work().client(config())
		lock := w.acquire(c, "job")
		wire.setFault(cut)
		time.AfterFunc(30*time.Second, func() { wire.setFault(nil) })
		first := make(chan error, 1)
		go func() { first <- lock.Commit(t.Context(), writes(note("a", "1"))) }()
		synctest.Wait()
		// It waits for a commit that takes longer than the lease.
		err := lock.CommitAndRelease(t.Context(), writes(note("a", "2")))
		var lost *leasehold.LostError
		if !errors.As(err, &lost) || lost.Reason != leasehold.LostExpired {
			t.Errorf("commit and release: %v", err)
		}
		if err := <-first; err != nil {
			t.Errorf("commit: %v", err)
		}
		w.wantLog("1")
		if textOf(w.item("job"), "isReleased") != "1" {
			t.Error("the key is not free")
		}
	})
}
